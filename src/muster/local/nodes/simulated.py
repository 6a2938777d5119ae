"""The kubelet of simulated nodes: thousands of nodes and tens of thousands of pods on one heap of timers.

A pod costs nothing between its steps: no task, no watch, no copy of the object. Its state is in the API,
so a cluster that was stopped goes on where it was.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from muster.local.api.access import Access, Object
from muster.local.clock import Clock, Timers, seconds_of
from muster.local.events import Recorder
from muster.local.nodes import simulation
from muster.local.nodes.addresses import Addresses, node_block
from muster.local.nodes.kubelet import current, host_address, release, report

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Machine:
    host: str
    addresses: Addresses
    alive: bool = True
    pods: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Seat:
    """A pod on a node: since when it is in its present state, and which of its timers is the valid one."""

    namespace: str
    name: str
    uid: str
    node: str
    since: float
    address: str
    going: bool = False
    due: int = 0


@dataclass(slots=True)
class SimulatedKubelet:
    """Moves pods through their lives by timers."""

    access: Access
    clock: Clock
    seed: int = 0
    recorder: Recorder = field(init=False)
    _machines: dict[str, _Machine] = field(default_factory=dict)
    _seats: dict[str, _Seat] = field(default_factory=dict)
    _timers: Timers[tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._timers = Timers(self.clock, self._fire)
        self.recorder = Recorder(self.access, self.clock, "kubelet")

    def adopt(self, node: Object) -> None:
        name = node["metadata"]["name"]
        if name not in self._machines:
            block = Addresses(node_block(len(self._machines)))
            self._machines[name] = _Machine(host_address(node), block)

    def fail(self, node: str) -> None:
        self._machines[node].alive = False

    def recover(self, node: str) -> None:
        machine = self._machines[node]
        machine.alive = True
        for uid in list(machine.pods):
            seat = self._seats[uid]
            if pod := self._pod(seat):
                self._lost(seat, pod)

    def drop(self, node: str) -> None:
        machine = self._machines.pop(node, None)
        for uid in machine.pods if machine else ():
            del self._seats[uid]

    def pod_seen(self, pod: Object) -> None:
        metadata = pod["metadata"]
        going = "deletionTimestamp" in metadata
        seat = self._seats.get(metadata["uid"])
        if seat is None:
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") and not going:
                return
            seat = self._sit(pod)
        elif seat.going == going:
            return
        if going and not seat.going:
            seat.since = self.clock.now()
        seat.going = going
        self._plan(seat, pod)

    def pod_gone(self, pod: Object) -> None:
        seat = self._seats.pop(pod["metadata"]["uid"], None)
        machine = self._machines.get(seat.node) if seat else None
        if seat and machine:
            machine.pods.discard(seat.uid)
            machine.addresses.give(seat.address)

    async def stop(self) -> None:
        self._timers.stop()

    def _sit(self, pod: Object) -> _Seat:
        metadata, status = pod["metadata"], pod.get("status") or {}
        machine = self._machines[pod["spec"]["nodeName"]]
        address = status.get("podIP") or ""
        if address:
            machine.addresses.claim(address)
        seat = _Seat(
            metadata["namespace"],
            metadata["name"],
            metadata["uid"],
            pod["spec"]["nodeName"],
            _since(pod, self.clock.now()),
            address,
        )
        machine.pods.add(seat.uid)
        self._seats[seat.uid] = seat
        if complaint := simulation.behaviour(pod).complaint:
            self.recorder.say(pod, "InvalidAnnotation", complaint, "Warning")
        return seat

    def _plan(self, seat: _Seat, pod: Object) -> None:
        seat.due += 1
        step = simulation.next_step(pod, seat.since, self.seed)
        if step:
            self._timers.add(step.at, (seat.uid, seat.due))

    def _fire(self, due: list[tuple[str, int]]) -> None:
        for uid, number in due:
            seat = self._seats.get(uid)
            if seat is None or seat.due != number or not self._machines[seat.node].alive:
                continue
            try:
                self._step(seat)
            except Exception:
                _log.exception("pod %s/%s on simulated node %s", seat.namespace, seat.name, seat.node)

    def _step(self, seat: _Seat) -> None:
        pod = self._pod(seat)
        step = simulation.next_step(pod, seat.since, self.seed) if pod else None
        if pod is None or step is None:
            return
        if step.kind == "remove":
            self._remove(seat, pod, step.exit_code)
        elif step.kind == "start":
            self._start(seat, pod)
        else:
            self._end(seat, pod, step.exit_code)

    def _start(self, seat: _Seat, pod: Object) -> None:
        seat.address = seat.address or self._machines[seat.node].addresses.take()
        host = self._machines[seat.node].host
        self._now(seat, pod, simulation.started(pod, seat.address, host, self.clock.now()))

    def _end(self, seat: _Seat, pod: Object, exit_code: int) -> None:
        self._now(seat, pod, simulation.ended(pod, exit_code, self.clock.now()))

    def _now(self, seat: _Seat, pod: Object, status: Object) -> None:
        """The pod gets into another state at this moment."""
        report(self.access, pod, status)
        seat.since = self.clock.now()
        self._plan(seat, {**pod, "status": {**(pod.get("status") or {}), **status}})

    def _remove(self, seat: _Seat, pod: Object, exit_code: int) -> None:
        held = pod["metadata"].get("finalizers")
        alive = (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        if held and alive:
            report(self.access, pod, simulation.ended(pod, exit_code, self.clock.now()))
        seat.due += 1
        release(self.access, pod)

    def _lost(self, seat: _Seat, pod: Object) -> None:
        """What the kubelet finds after its machine came back: containers that are gone."""
        if "running" in (simulation.first_container(pod).get("state") or {}) and not seat.going:
            self._end(seat, pod, simulation.LOST_CODE)
        else:
            seat.since = self.clock.now()
            self._plan(seat, pod)

    def _pod(self, seat: _Seat) -> Object | None:
        place = {"namespace": seat.namespace, "name": seat.name, "uid": seat.uid}
        return current(self.access, {"metadata": place})


def _since(pod: Object, now: float) -> float:
    """When a pod got into the state it is found in, as far as it tells."""
    state = simulation.first_container(pod).get("state") or {}
    started = seconds_of((state.get("running") or {}).get("startedAt"))
    return now if started is None else started
