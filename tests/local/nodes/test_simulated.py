"""Simulated nodes on a virtual clock: pods start, run, end, fail, are deleted and survive restarts of the
cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from muster.local.api.access import Object
from muster.local.clock import seconds_of
from muster.local.nodes.heartbeats import LEASES
from muster.local.nodes.running import Running, start_nodes
from muster.local.nodes.template import FAILED, NodeTemplate
from tests.local.cluster import Memory, advance


def pod(memory: Memory, name: str = "p", node: str = "node-0", **more: Any) -> Object:
    notes = {f"muster.sh/sim-{key.replace('_', '-')}": str(value) for key, value in more.items()}
    policy = notes.pop("muster.sh/sim-policy", "Never")
    metadata: Object = {"name": name, "namespace": "default", "annotations": notes}
    if notes.pop("muster.sh/sim-held", None):
        metadata["finalizers"] = ["example.com/held"]
    spec = {"nodeName": node, "restartPolicy": policy, "containers": [{"name": "main", "image": "x"}]}
    return memory.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def phase(memory: Memory, name: str = "p") -> str:
    return str(memory.get("pods", "default", name)["status"]["phase"])


def container(memory: Memory, name: str = "p") -> Object:
    found: Object = memory.get("pods", "default", name)["status"]["containerStatuses"][0]
    return found


@asynccontextmanager
async def nodes(memory: Memory, template: NodeTemplate | None = None, seed: int = 0) -> AsyncIterator[Running]:
    running = start_nodes(memory, [template or NodeTemplate()], memory.clock, root=Path("unused"), seed=seed)
    yield running
    await running.stop()


def run(story: Callable[[Memory], Awaitable[None]]) -> None:
    asyncio.run(_run(story))


async def _run(story: Callable[[Memory], Awaitable[None]]) -> None:
    memory = Memory()
    async with nodes(memory):
        await story(memory)


def test_a_pod_starts_runs_and_succeeds() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, start_delay="2s", run_time="30s")
        await advance(memory, 1.9)
        assert phase(memory) == "Pending"
        await advance(memory, 0.2)
        assert phase(memory) == "Running"
        status = memory.get("pods", "default", "p")["status"]
        assert status["podIP"] == "10.0.0.1"
        assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {
            "Ready",
            "ContainersReady",
        }
        await advance(memory, 29)
        assert phase(memory) == "Running"
        await advance(memory, 2)
        assert phase(memory) == "Succeeded"
        assert container(memory)["state"]["terminated"]["exitCode"] == 0

    run(story)


def test_an_exit_code_fails_it() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, run_time="5s", exit_code=42)
        await advance(memory, 10)
        assert phase(memory) == "Failed"
        assert container(memory)["state"]["terminated"]["exitCode"] == 42

    run(story)


def test_on_failure_restarts_in_place_with_a_back_off() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, policy="OnFailure", run_time="5s", exit_code=1)
        await advance(memory, 8)
        assert container(memory)["restartCount"] == 1
        assert "running" in container(memory)["state"]
        await advance(memory, 5)
        assert phase(memory) == "Running"
        assert container(memory)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        await advance(memory, 10)
        assert container(memory)["restartCount"] == 2
        assert "running" in container(memory)["state"]

    run(story)


def test_a_service_runs_until_it_is_deleted() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, policy="Always", stop_time="5s")
        await advance(memory, 100_000)
        assert phase(memory) == "Running"
        memory.delete("pods", "default", "p")
        await advance(memory, 4)
        assert memory.list("pods")
        await advance(memory, 2)
        assert memory.list("pods") == []

    run(story)


def test_who_does_not_stop_is_killed_when_its_grace_is_over() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, policy="Always", stop_time="1h")
        await advance(memory, 10)
        memory.delete("pods", "default", "p", grace=7)
        await advance(memory, 6)
        assert memory.list("pods")
        await advance(memory, 2)
        assert memory.list("pods") == []

    run(story)


def test_a_pod_somebody_holds_says_how_it_ended() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, policy="Always", held=True)
        await advance(memory, 10)
        memory.delete("pods", "default", "p")
        await advance(memory, 1)
        assert phase(memory) == "Failed"
        memory.patch("pods", "default", "p", {"metadata": {"finalizers": None}})
        await advance(memory, 1)
        assert memory.list("pods") == []

    run(story)


def test_a_bad_annotation_is_complained_about() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, run_time="soon")
        await advance(memory, 5)
        (event,) = memory.list("events")
        assert event["reason"] == "InvalidAnnotation"
        assert "muster.sh/sim-run-time: 'soon' is not a duration" in event["message"]
        assert phase(memory) == "Running"

    run(story)


def test_a_failed_node_falls_silent_and_its_pods_end_when_it_is_back() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, "stays", policy="Always")
        pod(memory, "ends", run_time="1h")
        await advance(memory, 5)
        memory.patch("nodes", None, "node-0", {"metadata": {"annotations": {FAILED: "7s"}}})
        await advance(memory, 1)
        lease = memory.get(LEASES, "kube-node-lease", "node-0")
        assert lease["spec"]["leaseDurationSeconds"] == 7
        memory.delete("pods", "default", "ends")
        await advance(memory, 600)
        assert memory.get(LEASES, "kube-node-lease", "node-0") == lease
        assert phase(memory, "ends") == "Running"
        memory.patch("nodes", None, "node-0", {"metadata": {"annotations": {FAILED: None}}})
        await advance(memory, 1)
        assert [p["metadata"]["name"] for p in memory.list("pods")] == ["stays"]
        assert container(memory, "stays")["restartCount"] == 1
        assert memory.get(LEASES, "kube-node-lease", "node-0") != lease

    run(story)


def test_a_restarted_cluster_goes_on_where_it_was() -> None:
    async def story() -> None:
        memory = Memory()
        async with nodes(memory):
            pod(memory, run_time="100s")
            await advance(memory, 50)
        async with nodes(memory):
            await advance(memory, 48)
            assert phase(memory) == "Running"
            await advance(memory, 4)
            assert phase(memory) == "Succeeded"

    asyncio.run(story())


def test_a_pod_bound_before_its_node_is_there_waits_for_it() -> None:
    async def story(memory: Memory) -> None:
        pod(memory, node="late-0", run_time="5s")
        await advance(memory, 50)
        assert phase(memory) == "Pending"
        memory.create("nodes", next(NodeTemplate(prefix="late").objects(memory.clock.now())))
        await advance(memory, 50)
        assert phase(memory) == "Succeeded"

    run(story)


def ends_of(seed: int) -> list[tuple[str, str]]:
    async def story() -> list[tuple[str, str]]:
        memory = Memory()
        async with nodes(memory, seed=seed):
            for number in range(40):
                pod(memory, f"p{number}", run_time="100s", failure_rate="0.5")
            await advance(memory, 200)
            return [
                (phase(memory, f"p{n}"), container(memory, f"p{n}")["state"]["terminated"]["finishedAt"])
                for n in range(40)
            ]

    return asyncio.run(story())


def test_chance_is_the_same_for_the_same_seed_and_only_then() -> None:
    first, other = ends_of(1), ends_of(2)
    assert first == ends_of(1)
    assert first != other
    assert 5 < sum(end[0] == "Failed" for end in first) < 35


def test_five_thousand_nodes_run_ten_thousand_pods_and_stay_alive() -> None:
    async def story() -> None:
        memory = Memory()
        async with nodes(memory, NodeTemplate(count=5000, racks=100)):
            assert len(memory.list("nodes")) == 5000
            for number in range(10_000):
                pod(memory, f"p{number}", f"node-{number % 5000}", run_time="300s")
            before = memory.writes
            await advance(memory, 600)
            pods = memory.list("pods")
            assert {p["status"]["phase"] for p in pods} == {"Succeeded"}
            assert len({p["status"]["podIP"] for p in pods}) == 10_000
            for lease in memory.list(LEASES):
                renewed = seconds_of(lease["spec"]["renewTime"]) or 0.0
                assert renewed + lease["spec"]["leaseDurationSeconds"] > memory.clock.now()
            renewals = memory.writes - before - 20_000
            assert renewals <= 600 * 20 + 5000

    asyncio.run(story())
