"""Start the nodes: register them, keep them alive, and hand each its pods.

One watch serves every node. Which nodes there are is what the API says: a node object with the label
`muster.sh/node-kind` is run by this module, whoever created it, and whatever ran when the cluster was last
stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock
from muster.local.nodes.heartbeats import NAMESPACE, Heartbeats
from muster.local.nodes.kubelet import Kubelet
from muster.local.nodes.process.agent import ProcessKubelet
from muster.local.nodes.simulated import SimulatedKubelet
from muster.local.nodes.template import (
    FAILED,
    KIND,
    PROCESS,
    SIMULATED,
    DurationError,
    NodeTemplate,
    duration,
    healthy,
)

_NOTICED_AFTER = 40.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Running:
    """Nodes at work, until they are stopped."""

    access: Access
    clock: Clock
    simulated: SimulatedKubelet
    processes: ProcessKubelet
    heartbeats: Heartbeats = field(init=False)
    _kubelet_of: dict[str, Kubelet] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _early: dict[str, dict[str, Object]] = field(default_factory=dict)
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.heartbeats = Heartbeats(self.access, self.clock)

    def start(self, templates: Iterable[NodeTemplate]) -> Running:
        _ensure_namespace(self.access)
        for template in templates:
            for node in template.objects(self.clock.now()):
                _ensure(self.access, node)
        for node in self.access.list("nodes"):
            self._node_seen(node)
        self._task = asyncio.create_task(self._follow())
        return self

    async def stop(self) -> None:
        """Stop following and every process that runs here; the API keeps what was reported last."""
        self.heartbeats.stop()
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.simulated.stop()
        await self.processes.stop()

    async def _follow(self) -> None:
        async for resource, change, obj in self.access.watch(["nodes", "pods"]):
            try:
                if resource == "nodes":
                    self._node_changed(change, obj)
                elif node := obj["spec"].get("nodeName"):
                    self._pod_changed(change, obj, node)
            except Exception:
                _log.exception("%s %s %s", resource, change, obj["metadata"]["name"])

    def _pod_changed(self, change: str, pod: Object, node: str) -> None:
        kubelet = self._kubelet_of.get(node)
        if kubelet is None:
            self._remember(change, pod, node)
        elif change == "DELETED":
            kubelet.pod_gone(pod)
        else:
            kubelet.pod_seen(pod)

    def _remember(self, change: str, pod: Object, node: str) -> None:
        """A pod may be bound to a node before the node is there."""
        waiting = self._early.setdefault(node, {})
        if change == "DELETED":
            waiting.pop(pod["metadata"]["uid"], None)
        else:
            waiting[pod["metadata"]["uid"]] = pod
        if not waiting:
            del self._early[node]

    def _node_changed(self, change: str, node: Object) -> None:
        if change != "DELETED":
            self._node_seen(node)
            return
        name = node["metadata"]["name"]
        if kubelet := self._kubelet_of.pop(name, None):
            kubelet.drop(name)
            self.heartbeats.forget(name)
            self._failed.discard(name)

    def _node_seen(self, node: Object) -> None:
        name = node["metadata"]["name"]
        kinds: dict[str, Kubelet] = {SIMULATED: self.simulated, PROCESS: self.processes}
        kubelet = kinds.get((node["metadata"].get("labels") or {}).get(KIND, ""))
        if kubelet is None:
            return
        if name not in self._kubelet_of:
            self._kubelet_of[name] = kubelet
            kubelet.adopt(node)
            if FAILED not in (node["metadata"].get("annotations") or {}):
                self._well(node)
            for pod in self._early.pop(name, {}).values():
                kubelet.pod_seen(pod)
        self._check_failure(kubelet, node, name)

    def _check_failure(self, kubelet: Kubelet, node: Object, name: str) -> None:
        asked = (node["metadata"].get("annotations") or {}).get(FAILED)
        if asked is not None and name not in self._failed:
            self._failed.add(name)
            kubelet.fail(name)
            self.heartbeats.end(name, _noticed_after(asked))
        elif asked is None and name in self._failed:
            self._failed.discard(name)
            self._well(node)
            kubelet.recover(name)

    def _well(self, node: Object) -> None:
        self.heartbeats.begin(node)
        ready = [c for c in (node.get("status") or {}).get("conditions") or () if c["type"] == "Ready"]
        if not ready or ready[0]["status"] != "True":
            status = {"conditions": healthy(self.clock.now())}
            self.access.patch("nodes", None, node["metadata"]["name"], {"status": status}, "status")


def _noticed_after(text: str) -> float:
    try:
        return duration(text)
    except DurationError:
        return _NOTICED_AFTER


def _ensure(access: Access, node: Object) -> None:
    try:
        made = access.create("nodes", node)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return
    if "capacity" not in (made.get("status") or {}):
        access.patch("nodes", None, node["metadata"]["name"], {"status": node["status"]}, "status")


def _ensure_namespace(access: Access) -> None:
    try:
        access.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def start_nodes(
    access: Access, templates: Iterable[NodeTemplate], clock: Clock, *, root: Path, seed: int = 0
) -> Running:
    """Register the nodes of the templates and run them, and those already registered, on this event loop.

    `root` is where process nodes keep what belongs to their pods: volumes, logs, and records of what runs.
    """
    simulated = SimulatedKubelet(access, clock, seed)
    return Running(access, clock, simulated, ProcessKubelet(access, clock, root)).start(templates)
