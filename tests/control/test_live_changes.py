"""The scheduler against the local cluster while things change: members, minimums, neighbours, priorities, leaders."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from muster.kube.errors import ApiError, LostError
from muster.kube.transport import Call, Reply, Transport
from tests.control.live import Live, Object, indexed, on, pod, pod_group

GROUP = {"pod-group.scheduling.sigs.k8s.io": "train"}


def test_a_group_that_comes_after_its_pods(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(*(pod(f"train-{index}", labels=GROUP) for index in range(3)))
        await cluster.until(lambda: bool(cluster.messages()), "they say what they wait for")
        assert cluster.bound() == []
        cluster.apply(pod_group("train", 3))
        await cluster.until(lambda: cluster.running() == 3, "all run")

    on(1, 4, tmp_path, test)


def test_a_minimum_that_is_lowered_starts_what_waits(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(pod_group("train", 5), *(pod(f"train-{index}", labels=GROUP) for index in range(3)))
        await cluster.until(lambda: cluster.messages() == {"3 of 5 members of train exist"}, "it waits for two more")
        cluster.patch("PodGroup", "train", {"spec": {"minMember": 3}})
        await cluster.until(lambda: cluster.running() == 3, "all run")

    on(1, 4, tmp_path, test)


def test_a_group_without_members_is_reported_on_from_the_start(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(pod_group("train", 2))
        cluster.schedule()

        def said() -> set[str]:
            conditions = cluster.get("PodGroup", "train").get("status", {}).get("conditions", [])
            return {condition["reason"] for condition in conditions}

        await cluster.until(lambda: said() == {"WaitingForMembers"}, "the group says that nobody is there")

    on(1, 4, tmp_path, test, schedulers=0)


def test_a_member_that_is_replaced_waits_for_its_seat_to_be_left(tmp_path: Path) -> None:
    """The only node is full: the seat is held for the new member, and taken once the old one has gone."""

    def member(index: int) -> Object:
        made = pod(f"train-{index}", labels=GROUP)
        made["metadata"]["annotations"] = {"muster.sh/sim-stop-time": "1s"}
        return made

    async def test(cluster: Live) -> None:
        cluster.apply(pod_group("train", 4), *(member(index) for index in range(4)))
        await cluster.until(lambda: cluster.running("train") == 4, "all run")
        cluster.apply(indexed("other", 1))
        await cluster.until(lambda: bool(cluster.messages("other")), "another gang waits for room")
        most = 0

        def replaced() -> bool:
            nonlocal most
            most = max(most, len(cluster.bound()))
            return bool(cluster.bound("train-4"))

        cluster.delete("Pod", "train-0")
        assert len(cluster.bound("train")) == 4
        cluster.apply(member(4))
        await cluster.until(replaced, "a new member sits where the old one did")
        assert most == 4
        assert cluster.bound("other") == []

    on(1, 4, tmp_path, test)


def test_what_others_bind_is_counted(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(pod("foreign", schedulerName="other", nodeName="node-0"))
        await cluster.until(lambda: cluster.running("foreign") == 1, "the foreign pod runs")
        cluster.apply(indexed("train", 4))
        await cluster.until(lambda: bool(cluster.messages("train")), "the gang says why it waits")
        assert cluster.bound("train") == []
        cluster.delete("Pod", "foreign")
        await cluster.until(lambda: cluster.running("train") == 4, "all run once the foreign pod is gone")

    on(1, 4, tmp_path, test)


def test_of_those_that_wait_the_higher_priority_starts_first(tmp_path: Path) -> None:
    def of_class(name: str, priority: str) -> Object:
        wanted = indexed(name, 4)
        wanted["spec"]["template"]["spec"]["priorityClassName"] = priority
        return wanted

    async def test(cluster: Live) -> None:
        for name, value in (("low", 1), ("high", 1000)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            cluster.apply({**kind, "metadata": {"name": name}, "value": value})
        cluster.apply(indexed("first", 4))
        await cluster.until(lambda: cluster.running("first") == 4, "the first runs")
        cluster.apply(of_class("modest", "low"))
        await cluster.until(lambda: bool(cluster.messages("modest")), "the modest one waits")
        cluster.apply(of_class("urgent", "high"))
        await cluster.until(lambda: bool(cluster.messages("urgent")), "the urgent one waits")
        cluster.delete("Job", "first")
        await cluster.until(lambda: cluster.running("urgent") == 4, "the urgent one runs")
        assert cluster.bound("modest") == []

    on(1, 4, tmp_path, test)


def test_of_two_schedulers_one_leads_and_the_other_takes_over(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(indexed("one", 4))
        await cluster.until(lambda: cluster.running("one") == 4, "the first gang runs")
        cluster.apply(indexed("two", 4))
        await cluster.until(lambda: bool(cluster.messages("two")), "the second waits")
        cluster.schedule()
        cluster.schedule()
        holder = lease_holder(cluster)
        await cluster.stop(cluster.schedulers[0])
        await cluster.until(lambda: lease_holder(cluster) not in {"", holder}, "another leads")
        cluster.delete("Job", "one")
        await cluster.until(lambda: cluster.running("two") == 4, "the other starts what waited")
        assert all(not scheduler.done() for scheduler in cluster.schedulers)

    on(1, 4, tmp_path, test)


def lease_holder(cluster: Live) -> str:
    lease = cluster.whole.api.access.get("coordination.k8s.io/leases", "kube-system", "muster")
    return str(lease["spec"].get("holderIdentity", ""))


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every call from now on that is no watch."""
    calls: list[Call] = []
    plain = Transport.send

    async def send(self: Transport, call: Call) -> Reply:
        calls.append(call)
        return await plain(self, call)

    monkeypatch.setattr(Transport, "send", send)
    return calls


def test_an_idle_cluster_costs_no_calls_but_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(indexed("runs", 3), indexed("waits", 3), indexed("huge", 99), pod_group("empty", 2))
        await cluster.until(lambda: cluster.running("runs") == 3, "one runs")
        await cluster.until(lambda: bool(cluster.messages("waits")), "one waits")
        await cluster.until(lambda: bool(cluster.messages("huge")), "one has no hope")
        calls = watched(monkeypatch)

        async def quiet() -> None:
            """Until a second passed without a call."""
            seen = -1
            while len(others(calls)) != seen:
                seen = len(others(calls))
                await asyncio.sleep(1)

        await asyncio.wait_for(quiet(), 60)
        calls.clear()
        await asyncio.sleep(3)
        assert [call.path for call in others(calls)] == []
        assert len(calls) <= 4

    on(1, 4, tmp_path, test)


def others(calls: list[Call]) -> list[Call]:
    return [call for call in calls if "/leases/" not in call.path]


@pytest.mark.parametrize("seed", [1, 2])
def test_gangs_run_whole_through_an_api_that_fails_at_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    plain = Transport.send
    faults: Counter[str] = Counter()

    async def send(self: Transport, call: Call) -> Reply:
        fault = chance.choice(["", "", "lost", "unanswered", "429", "500", "409"])
        if "/leases/" in call.path or not fault:
            return await plain(self, call)
        faults[fault] += 1
        if fault == "unanswered":
            await plain(self, call)
        if fault in {"lost", "unanswered"}:
            raise LostError("the wire was cut")
        raise ApiError(int(fault), "", "no", retry_after=0.01)

    async def test(cluster: Live) -> None:
        monkeypatch.setattr(Transport, "send", send)
        cluster.apply(*(indexed(f"gang-{index}", 6) for index in range(5)))
        await cluster.until(lambda: cluster.running() == 24, "as many gangs as fit are whole")
        gangs = Counter(each["metadata"]["name"][:6] for each in cluster.bound())
        assert sorted(gangs.values()) == [6, 6, 6, 6]
        assert max(Counter(each["spec"]["nodeName"] for each in cluster.bound()).values()) <= 4
        assert set(faults) == {"lost", "unanswered", "429", "500", "409"}
        monkeypatch.setattr(Transport, "send", plain)

    on(7, 4, tmp_path, test)
