"""Repair: what is missing comes back near the survivors, or all of it is stopped after its grace."""

from dataclasses import replace

import pytest

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness
from muster.plan.actions import Stop
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks, running

GRACE = replace(parse("easy"), repair_grace=10.0)


def test_the_smallest_domain_around_the_survivors() -> None:
    state = State(racks((2, 4), (4,), (4,)), RACKS, GRACE)
    state.adopt(running(gang("a", 6), 0.0, {"r0-0": 2}))
    assert binds(cycle(state, 1.0)[0]) == {"a": ("repair", {"r0-1": 4})}


@pytest.mark.parametrize(("required", "where"), [("", {"r2-0": 4, "r3-0": 2}), ("zone", None), ("rack", None)])
def test_beyond_its_required_domain_it_is_not_repaired(required: str, where: dict[str, int] | None) -> None:
    state = State(racks((2,), (2,), (4,), (4,)), RACKS, GRACE)
    state.adopt(running(gang("b", 1), 0.0, {"r1-0": 1}))
    state.adopt(running(gang("a", 8, closeness=Closeness(required)), 0.0, {"r0-0": 2}))
    found = binds(cycle(state, 1.0)[0]).get("a")
    assert (None if found is None else found[1]) == where


def test_the_zone_is_near_when_the_rack_is_full() -> None:
    state = State(racks((2,), (4,), (4, 4)), RACKS, GRACE)
    state.adopt(running(gang("a", 5), 0.0, {"r0-0": 2}))
    assert binds(cycle(state, 1.0)[0])["a"][1] == {"r1-0": 3}


def test_what_nothing_can_hold_is_stopped_whole_after_its_grace() -> None:
    state = State([node("n0", 4)], policy=GRACE)
    state.adopt(running(gang("a", 4), 0.0, {"n0": 4}))
    state.update_node(replace(node("n0", 4), schedulable=False))
    state.lose("a", 0, "n0", 1, now=5.0)
    assert cycle(state, 5.0)[0].actions == []
    assert state.wake_at(5.0) == 15.0
    assert cycle(state, 14.9)[0].actions == []
    (stop,) = cycle(state, 15.0)[0].actions
    assert isinstance(stop, Stop)
    assert stop.gang.uid == "a"
    assert cycle(state, 16.0)[0].actions == [], "it is told once"


def test_room_within_the_grace_saves_it() -> None:
    state = State([node("n0", 4)], policy=GRACE)
    state.adopt(running(gang("a", 4), 0.0, {"n0": 3}))
    state.adopt(running(gang("b", 1), 0.0, {"n0": 1}))
    assert cycle(state, 5.0)[0].actions == []
    state.finish("b", 12.0)
    assert binds(cycle(state, 12.0)[0]) == {"a": ("repair", {"n0": 1})}
    state.lose("a", 0, "n0", 1, now=14.0)
    state.adopt(running(gang("c", 1), 14.0, {"n0": 1}))
    assert cycle(state, 23.0)[0].actions == [], "a new loss has a grace of its own"
    assert len(cycle(state, 24.0)[0].actions) == 1


def test_all_or_nothing_of_what_is_missing() -> None:
    state = State([node("n0", 2), node("n1", 2)], policy=GRACE)
    state.adopt(running(gang("a", 5), 0.0, {"n0": 2}))
    assert cycle(state, 0.0)[0].actions == []
    assert state.running["a"].members() == 2


def test_the_longest_partial_first_and_before_any_new_gang() -> None:
    state = State([node("n0", 4)], policy=GRACE)
    for uid, since in (("late", 3.0), ("early", 2.0)):
        state.adopt(replace(running(gang(uid, 2), 0.0, {"n0": 1}), partial_since=since))
    state.adopt(running(gang("other", 1), 0.0, {"n0": 1}))
    state.submit(gang("new", 1))
    assert binds(cycle(state, 4.0)[0]) == {"early": ("repair", {"n0": 1})}


def test_members_that_finished_are_not_missing() -> None:
    state = State([node("n0", 4)], policy=GRACE)
    state.adopt(running(gang("a", 2), 0.0, {"n0": 2}))
    state.succeed("a", 0, "n0", 1)
    assert cycle(state, 1.0)[0].actions == []
    assert state.running["a"].missing() == [0]


def test_only_the_roles_that_lack_members_get_some() -> None:
    roles = (Role("launcher", 1, {GPU: 1}), Role("worker", 4, {GPU: 1}))
    state = State([node("n0", 4), node("n1", 4)], policy=GRACE)
    state.adopt(running(Gang("g", roles, 0.0), 0.0, {"n0": 1}, {"n1": 1}))
    (bind,) = cycle(state, 1.0)[0].binds
    assert [(seats.role, sum(seats.counts)) for seats in bind.seats] == [(1, 3)]


def test_who_lost_everything_starts_anywhere_again() -> None:
    state = State(racks((4,), (4,)), RACKS, GRACE)
    state.adopt(running(gang("a", 3, closeness=Closeness("rack")), 0.0, {"r0-0": 3}))
    state.adopt(running(gang("b", 1), 0.0, {"r0-0": 1}))
    state.lose("a", 0, "r0-0", 3, now=1.0)
    state.update_node(replace(node("r0-0", 4, zone="z0", rack="r0"), schedulable=False))
    assert binds(cycle(state, 1.0)[0]) == {"a": ("repair", {"r1-0": 3})}
