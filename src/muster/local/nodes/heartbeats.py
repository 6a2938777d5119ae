"""Leases: how the control plane knows that a node is alive.

With few nodes each renews every ten seconds, as a kubelet does. With thousands that alone would be
hundreds of writes a second, so the pace of all together is bounded and each lease promises longer. A node
that is made to fail says in its last lease how soon it is to be missed: whoever watches leases needs to
know nothing of simulations.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock, Timers, micro_stamp

LEASES, NAMESPACE = "coordination.k8s.io/leases", "kube-node-lease"
_INTERVAL = 10.0
_PER_SECOND = 20.0
_MISSED = 4

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Heartbeats:
    """Renews the leases of the nodes that are alive."""

    access: Access
    clock: Clock
    _alive: set[str] = field(default_factory=set)
    _beating: set[str] = field(default_factory=set)
    _timers: Timers[str] = field(init=False)

    def __post_init__(self) -> None:
        self._timers = Timers(self.clock, self._beat)

    def begin(self, node: Object) -> None:
        """A node is alive from now on."""
        name = node["metadata"]["name"]
        self._alive.add(name)
        self._renew(name, self._promise(), node["metadata"].get("uid", ""))
        if name not in self._beating:
            self._beating.add(name)
            spread = 0.5 + 0.5 * (len(self._beating) % 101) / 101
            self._timers.add(self.clock.now() + spread * self._interval(), name)

    def end(self, name: str, noticed_after: float) -> None:
        """A node is dead, and is to be missed after so many seconds."""
        self._alive.discard(name)
        self._renew(name, max(1, round(noticed_after)))

    def forget(self, name: str) -> None:
        self._alive.discard(name)

    def stop(self) -> None:
        self._timers.stop()

    def _interval(self) -> float:
        return max(_INTERVAL, len(self._alive) / _PER_SECOND)

    def _promise(self) -> int:
        return round(_MISSED * self._interval())

    def _beat(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._alive:
                self._try(name)
                self._timers.add(self.clock.now() + self._interval(), name)
            else:
                self._beating.discard(name)

    def _try(self, name: str) -> None:
        """A renewal that is refused once is no reason to die: the next one may be accepted."""
        try:
            self._renew(name, self._promise())
        except ApiError as error:
            _log.warning("lease of node %s: %s", name, error)

    def _renew(self, name: str, promise: int, uid: str = "") -> None:
        renewed = {"renewTime": micro_stamp(self.clock.now()), "leaseDurationSeconds": promise}
        try:
            self.access.patch(LEASES, NAMESPACE, name, {"spec": renewed})
        except ApiError as error:
            if error.code != 404:
                raise
            self._create(name, uid, renewed)

    def _create(self, name: str, uid: str, renewed: Object) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        metadata: Object = {"name": name, "namespace": NAMESPACE}
        if uid:
            metadata["ownerReferences"] = [owner]
        spec = {"holderIdentity": name, **renewed}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        self.access.create(LEASES, lease, NAMESPACE)
