"""Growing: up to what a gang can use, in order of start, and never into what was promised."""

import pytest

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness, Parallelism
from muster.plan.cycle import cycle
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks, running


def members(state: State, uid: str) -> int:
    return state.running[uid].members()


@pytest.mark.parametrize(("most", "grown"), [(2, 2), (3, 3), (8, 8), (30, 8)])
def test_it_takes_what_it_can_use_of_what_there_is(most: int, grown: int) -> None:
    state = State([node("n0"), node("n1")])
    state.submit(gang("a", 2, most=most))
    plan, _ = cycle(state, 0.0)
    assert members(state, "a") == grown
    assert [bind.why for bind in plan.binds if bind.why != "grow"] == ["start"]
    assert all(bind.complete for bind in plan.binds)
    assert cycle(state, 1.0)[0].actions == []


def test_the_earliest_started_grows_first() -> None:
    state = State([node("n0", 6)])
    state.adopt(running(gang("late", 1, most=9), 2.0, {"n0": 1}))
    state.adopt(running(gang("early", 1, most=3), 1.0, {"n0": 1}))
    cycle(state, 3.0)
    assert (members(state, "early"), members(state, "late")) == (3, 3)


@pytest.mark.parametrize("gpus", [1, 2])
def test_it_does_not_grow_into_a_promise(gpus: int) -> None:
    """`bends` would last beyond the promised start; in counts (one shape) and node by node (two)."""
    state = State([node("n0", 8)])
    state.adopt(running(gang("runs", 4, walltime=50.0), 0.0, {"n0": 4}))
    state.adopt(running(gang("bends", 1, most=4, walltime=90.0), 0.0, {"n0": 1}))
    state.submit(gang("waits", 6 // gpus, gpus=gpus))
    cycle(state, 1.0)
    assert state.queue.entries["waits"].promised == 50.0
    assert members(state, "bends") <= 2
    state.finish("runs", 50.0)
    assert binds(cycle(state, 50.0)[0])["waits"] == ("start", {"n0": 6 // gpus})


def test_it_grows_into_room_that_it_gives_back_in_time() -> None:
    state = State([node("n0", 8)])
    state.adopt(running(gang("runs", 4, walltime=50.0), 0.0, {"n0": 4}))
    state.adopt(running(gang("bends", 1, most=4, walltime=50.0), 0.0, {"n0": 1}))
    state.submit(gang("waits", 8))
    cycle(state, 1.0)
    assert members(state, "bends") == 4


def test_it_stays_in_the_domain_it_requires() -> None:
    state = State(racks((2,), (8,)), RACKS)
    state.adopt(running(gang("a", 1, most=8, closeness=Closeness("rack")), 0.0, {"r0-0": 1}))
    cycle(state, 1.0)
    assert members(state, "a") == 2


def test_once_nobody_is_left_it_does_not_grow() -> None:
    """Its quorum has finished, and it lives nowhere."""
    state = State(racks((1,), (1, 1), (1,)), RACKS)
    state.adopt(running(gang("a", 1, most=4, closeness=Closeness("rack")), 0.0, {"r0-0": 1}))
    state.succeed("a", 0, "r0-0", 1)
    assert cycle(state, 1.0)[0].actions == []


def test_it_grows_by_whole_pipelines() -> None:
    role = Role("worker", 4, {GPU: 1}, 15, parallelism=Parallelism(2, 2, 3))
    state = State([node("n0", 4), node("n1", 3), node("n2", 4)])
    state.submit(Gang("a", (role,), 0.0))
    cycle(state, 0.0)
    assert members(state, "a") == 8
    assert all(count % 2 == 0 for part in state.running["a"].parts for count in part.counts.tolist())


def test_members_that_finished_are_not_replaced_by_surplus() -> None:
    state = State([node("n0", 8)])
    state.adopt(running(gang("a", 2, most=4), 0.0, {"n0": 4}))
    state.succeed("a", 0, "n0", 1)
    assert cycle(state, 1.0)[0].actions == []


def test_a_partial_gang_is_repaired_before_it_grows() -> None:
    state = State([node("n0", 4)])
    state.adopt(running(gang("a", 3, most=4), 0.0, {"n0": 1}))
    assert [(bind.why, bind.complete) for bind in cycle(state, 1.0)[0].binds] == [("repair", True), ("grow", True)]


def test_each_role_grows_by_itself() -> None:
    roles = (Role("a", 1, {GPU: 2}, 2), Role("b", 1, {GPU: 1}, 9))
    state = State([node("n0", 8)])
    state.submit(Gang("g", roles, 0.0))
    cycle(state, 0.0)
    assert [state.running["g"].held(role) for role in (0, 1)] == [2, 4]
    assert state.running["g"].surplus() == [1, 3]
