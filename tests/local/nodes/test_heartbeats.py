"""Leases: at a kubelet's pace for few nodes, at a bounded one for many, and never late."""

from __future__ import annotations

import asyncio

import pytest

from muster.local.api.access import Object
from muster.local.clock import seconds_of
from muster.local.nodes.heartbeats import LEASES, Heartbeats
from tests.local.cluster import Memory, forbid


def beat(count: int, seconds: float) -> tuple[Memory, int]:
    async def story() -> tuple[Memory, int]:
        memory = Memory()
        beats = Heartbeats(memory, memory.clock)
        for number in range(count):
            beats.begin({"metadata": {"name": f"n{number}", "uid": str(number)}})
        before = memory.writes
        until = memory.clock.now() + seconds
        while memory.clock.step(until):
            for lease in memory.list(LEASES) if count < 10 else []:
                assert valid(lease, memory)
        assert all(valid(lease, memory) for lease in memory.list(LEASES))
        beats.stop()
        return memory, memory.writes - before

    return asyncio.run(story())


def valid(lease: Object, memory: Memory) -> bool:
    renewed = seconds_of(lease["spec"]["renewTime"]) or 0.0
    return bool(renewed + lease["spec"]["leaseDurationSeconds"] > memory.clock.now())


@pytest.mark.parametrize(("count", "most"), [(3, 3 * 61), (1000, 600 * 20 * 2)])
def test_renewals_are_bounded_and_no_lease_runs_out(count: int, most: int) -> None:
    memory, writes = beat(count, 600)
    assert count <= writes <= most
    lease = memory.list(LEASES)[0]
    assert lease["spec"]["leaseDurationSeconds"] == (40 if count == 3 else 200)
    assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_a_refused_renewal_does_not_stop_the_next() -> None:
    async def story() -> None:
        memory = Memory()
        beats = Heartbeats(memory, memory.clock)
        beats.begin({"metadata": {"name": "n", "uid": "u"}})
        memory.delete(LEASES, "kube-node-lease", "n")

        def refuse(_resource: str, _obj: Object) -> None:
            raise forbid("not now")

        memory.admit = refuse
        until = memory.clock.time + 15
        while memory.clock.step(until):
            pass
        memory.admit = lambda _resource, _obj: None
        until = memory.clock.time + 15
        while memory.clock.step(until):
            pass
        assert memory.list(LEASES)
        beats.stop()

    asyncio.run(story())
