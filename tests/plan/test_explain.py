"""Reasons: what a gang needs, what lacks, until when, and who is in the way."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.rules import Rules, Taint
from muster.model.topology import Closeness, Parallelism
from muster.plan.cycle import cycle
from muster.plan.explain import amounts, clock, explain
from muster.plan.policy import parse
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, gang, node, racks, running

NOON = datetime(2030, 5, 6, 12, 0, tzinfo=UTC).timestamp()


def reason(state: State, one: Gang, now: float = 0.0) -> str:
    state.submit(one)
    cycle(state, now)
    return state.why(one.uid, now)


def test_what_lacks_until_when_and_who_ends() -> None:
    state = State(racks((4, 4), (4,)), RACKS)
    state.adopt(running(gang("train-17", 6, walltime=4800.0), NOON, {"r0-0": 4, "r0-1": 2}))
    one = gang("g", 8, submitted=NOON, closeness=Closeness("rack"))
    told = reason(state, one, NOON)
    assert told == "needs 8 × 1 GPU in one rack; r1 lacks room for 4 until about 13:20, when train-17 ends"


def test_the_gang_that_ends_goes_by_its_uid_if_it_has_no_name() -> None:
    state = State([node("n0")])
    state.adopt(running(replace(gang("uid-1", 4), name=""), 0.0, {"n0": 4}))
    assert reason(state, gang("g", 2)).endswith("lacks room for 2 until about second 100, when uid-1 ends")


def test_without_an_end_in_sight_there_is_no_time() -> None:
    state = State([node("n0")])
    state.adopt(running(gang("a", 3, walltime=None), 0.0, {"n0": 3}))
    assert reason(state, gang("g", 4)) == "needs 4 × 1 GPU; the cluster lacks room for 3"


def test_room_that_its_layout_cannot_use() -> None:
    state = State([node("n0"), node("n1")])
    for name in ("n0", "n1"):
        state.adopt(running(gang(f"a{name}", 3, walltime=None), 0.0, {name: 3}))
    peers = Gang("g", (Role("w", 2, {GPU: 1}, parallelism=Parallelism(2)),), 0.0)
    assert "has room for 2, but not as its placement rules ask" in reason(state, peers)


@pytest.mark.parametrize(
    ("length", "words"),
    [(None, "a run of unknown length"), (5400.0, "its run of 1 h 30 min"), (7200.0, "its run of 2 h")],
)
def test_there_is_room_but_it_would_delay_someone(length: float | None, words: str) -> None:
    state = State([node("n0")])
    state.adopt(running(gang("a", 3, walltime=3600.0), NOON, {"n0": 3}))
    state.submit(gang("big", 4, submitted=NOON))
    told = reason(state, gang("g", 1, submitted=NOON + 1, walltime=length), NOON + 1)
    assert told == f"needs 1 × 1 GPU; there is room, but {words} would delay big, promised for about 13:00"


def test_there_is_room_but_nobody_may_pass() -> None:
    state = State([node("n0")], policy=parse("fcfs"))
    state.adopt(running(gang("a", 3), 0.0, {"n0": 3}))
    state.submit(gang("big", 4))
    told = reason(state, gang("g", 1, submitted=1.0), 1.0)
    assert told == "needs 1 × 1 GPU; there is room, but big is before it and nobody may pass"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (Gang("g", (Role("w", 2, {"fpga": 1, "asic": 1, GPU: 1}),), 0.0), "no node has asic, fpga"),
        (
            Gang("g", (Role("w", 2, {GPU: 1}, rules=Rules(node_selector=(("kind", "x"),))),), 0.0),
            "no node is ready, untainted and labelled as role w requires",
        ),
        (gang("g", 2, closeness=Closeness("block")), "in one block; no such topology level is known"),
        (gang("g", 13), "even empty, the 3 nodes it may use would hold 12"),
        (gang("g", 1, gpus=5), "even empty, the 3 nodes it may use would hold 0"),
        (gang("g", 9, closeness=Closeness("rack")), "cannot hold them in one domain under their placement rules"),
        (
            Gang("g", (Role("a", 8, {GPU: 1}), Role("b", 8, {GPU: 1})), 0.0),
            "the empty cluster cannot hold them under their placement rules",
        ),
    ],
)
def test_what_can_never_start_is_told_why_and_costs_nothing(one: Gang, why: str) -> None:
    state = State(racks((4, 4), (4,)), RACKS)
    told = reason(state, one)
    assert told.startswith("needs ")
    assert told.endswith(why)
    assert not state.queue.open_kinds()
    assert explain(state, 0.0)[0].expected is None


def test_hope_comes_and_goes_with_the_nodes() -> None:
    state = State([node("n0")])
    assert reason(state, gang("g", 6)).endswith("even empty, the node it may use would hold 4")
    state.set_nodes([node("n0"), node("n1")])
    state.adopt(running(gang("a", 4), 0.0, {"n0": 4}))
    assert "lacks room for 2" in state.why("g", 1.0)
    state.update_node(replace(node("n1"), taints=(Taint("broken"),)))
    assert state.why("g", 2.0).endswith("even empty, the node it may use would hold 4")


def test_the_rest_of_a_group_is_waited_for() -> None:
    state = State([node("n0")])
    state.submit(gang("a", 1, group="crew", group_size=3))
    assert state.why("a", 0.0) == "waits for 2 more of the 3 gangs of group crew"
    state.submit(gang("b", 1, group="crew", group_size=3))
    assert state.why("a", 0.0) == state.why("b", 0.0) == "waits for 1 more of the 3 gangs of group crew"


def test_every_role_and_every_gang_of_a_group_is_named() -> None:
    state = State([node("n0")])
    roles = (Role("a", 1, {"cpu": 500}), Role("b", 2, {GPU: 2, "cpu": 4000}))
    state.submit(Gang("a", roles, 0.0, group="two", group_size=2))
    state.submit(Gang("b", (Role("w", 1, {GPU: 1}),), 0.0, group="two", group_size=2))
    assert state.why("a", 0.0).startswith("needs 1 × 0.5 CPU + 2 × 2 GPUs and 1 × 1 GPU; no node has cpu")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({GPU: 8, "cpu": 4000, "memory": 1 << 40}, "8 GPUs"),
        ({"cpu": 1500, "memory": 3 << 29}, "1.5 CPU + 1.5 GiB memory"),
        ({"vendor.com/card": 2, "pods": 1}, "2 vendor.com/card"),
        ({"cpu": 0, "pods": 1}, "nothing"),
    ],
)
def test_amounts_in_words(request_: dict[str, int], words: str) -> None:
    assert amounts(request_) == words


@pytest.mark.parametrize(
    ("time", "words"), [(60.4, "second 60"), (NOON + 3660, "13:01"), (NOON + 12 * 3600, "2030-05-07 00:00")]
)
def test_the_time_of_day_with_the_date_where_it_is_not_today(time: float, words: str) -> None:
    assert clock(time, NOON) == words


def test_gangs_of_one_kind_are_all_told() -> None:
    state = State([Node("n0", {GPU: 4})])
    state.adopt(running(gang("a", 4, walltime=None), 0.0, {"n0": 4}))
    for number in range(5):
        state.submit(gang(f"g{number}", 2))
    cycle(state, 0.0)
    told = explain(state, 0.0)
    assert sorted(each.uid for each in told) == [f"g{number}" for number in range(5)]
    assert len({each.reason for each in told}) == 1
    assert state.why("a", 0.0) == ""
