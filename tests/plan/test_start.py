"""Starting: out of the queue, onto the nodes, and said in the plan, all at once."""

from math import inf

import pytest

from muster.model.gang import Gang, Role
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks


@pytest.mark.parametrize(("walltime", "estimate", "end"), [(60.0, None, 65.0), (60.0, 20.0, 25.0), (None, None, inf)])
def test_a_gang_that_starts_holds_its_nodes_until_its_expected_end(
    walltime: float | None, estimate: float | None, end: float
) -> None:
    state = State([node("n0"), node("n1")])
    state.submit(gang("a", 6, walltime=walltime, estimate=estimate))
    plan, _ = cycle(state, 5.0)
    holding = state.running["a"]
    assert (holding.started, holding.end, holding.members(), holding.missing()) == (5.0, end, 6, [0])
    assert state.ledger.free[state.ledger.resources[GPU]].tolist() == [0, 2]
    assert not state.queue.entries
    (bind,) = plan.binds
    assert (bind.why, bind.complete, sum(bind.seats[0].counts)) == ("start", True, 6)


def test_seats_come_by_role_and_in_rank_order() -> None:
    state = State(reversed(racks((4, 4), (4,))), RACKS)
    roles = (Role("small", 3, {GPU: 1}), Role("large", 2, {GPU: 4}))
    state.submit(Gang("g", roles, 0.0))
    (bind,) = cycle(state, 0.0)[0].binds
    assert [seats.role for seats in bind.seats] == [0, 1]
    for seats in bind.seats:
        assert list(seats.nodes) == sorted(seats.nodes)
        assert all(type(count) is int for count in seats.counts), "plain numbers, fit to be written down"


def test_who_passes_a_promise_is_backfilled_and_who_does_not_just_starts() -> None:
    state = State([node("n0", 4)])
    state.submit(gang("runs", 3, walltime=50.0))
    assert binds(cycle(state, 0.0)[0])["runs"][0] == "start"
    state.submit(gang("waits", 4, submitted=1.0))
    state.submit(gang("short", 1, submitted=2.0, walltime=40.0))
    state.submit(gang("long", 1, submitted=3.0, walltime=60.0))
    assert binds(cycle(state, 3.0)[0]) == {"short": ("backfill", {"n0": 1})}
    state.finish("short", 43.0)
    state.finish("runs", 50.0)
    assert binds(cycle(state, 50.0)[0]) == {"waits": ("start", {"n0": 4})}


def test_nobody_passes_where_nobody_may() -> None:
    state = State([node("n0", 4)], policy=parse("fcfs"))
    for uid, members in (("runs", 3), ("waits", 4), ("small", 1)):
        state.submit(gang(uid, members))
    assert list(binds(cycle(state, 0.0)[0])) == ["runs"]


def test_a_group_starts_together_or_not_at_all() -> None:
    state = State([node("n0", 4)])
    for uid, members in (("a", 3), ("b", 2)):
        state.submit(gang(uid, members, group="pair", group_size=2))
    state.submit(gang("c", 4, submitted=1.0))
    assert list(binds(cycle(state, 1.0)[0])) == ["c"]
    state.update_node(node("n0", 9))
    assert sorted(binds(cycle(state, 2.0)[0])) == ["a", "b"]
