"""The future in counts says what the future node by node says, where both can be asked."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Reservation
from muster.plan.counted import Counted
from muster.plan.nodewise import Nodewise
from muster.plan.state import State
from tests.plan.small import gang, node, running

NOW = 10.0


@dataclass
class Both:
    """One state, and both futures of it."""

    state: State
    counted: Counted
    nodewise: Nodewise


HELD = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 30)), max_size=5)


def world(held: list[tuple[int, int, int]], promised: list[Gang]) -> Both:
    state = State([node("n0", 4), node("n1", 4), node("n2", 2)])
    free = [4, 4, 2]
    for number, (place, members, length) in enumerate(held):
        if members <= free[place]:
            free[place] -= members
            state.adopt(running(gang(f"r{number}", members, walltime=float(length)), NOW - 1, {f"n{place}": members}))
    for each in promised:
        state.submit(each)
    promises = list(state.promises.values())
    holdings = state.running.values()
    shape = state.shapes.of(gang("x", 1).roles[0])
    return Both(
        state,
        Counted(shape, NOW, holdings, promises),
        Nodewise(state.ledger, state.asker.place, NOW, holdings, promises),
    )


PROMISED = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 20), st.integers(0, 25)), max_size=2).map(
    lambda many: [
        gang(f"p{i}", members, walltime=float(length), submitted=float(i), promised=Reservation(NOW + at))
        for i, (members, length, at) in enumerate(many)
    ]
)


@settings(max_examples=200)
@given(HELD, st.integers(1, 10), st.integers(1, 25))
def test_the_earliest_start_beside_those_that_run(held: list[tuple[int, int, int]], need: int, length: int) -> None:
    both = world(held, [])
    both.state.submit(gang("x", need, walltime=float(length)))
    entry = both.state.queue.entries["x"]
    time = both.counted.earliest(entry, NOW)
    assert time == both.nodewise.earliest(entry, NOW)
    assert time is not None, "all that runs has an end"
    assert both.counted.admits(entry, NOW) == (time == NOW)


@settings(max_examples=200)
@given(HELD, PROMISED, st.integers(1, 10), st.integers(1, 25))
def test_a_promise_found_in_counts_is_never_later_than_one_found_by_nodes(
    held: list[tuple[int, int, int]], promised: list[Gang], need: int, length: int
) -> None:
    """Nodes are kept for promises; in counts they are chosen at the start, which only leaves more room."""
    both = world(held, promised)
    if {e.uid for e in both.counted.lost} | {e.uid for e in both.nodewise.lost}:
        return
    both.state.submit(gang("x", need, walltime=float(length)))
    entry = both.state.queue.entries["x"]
    times = both.counted.earliest(entry, NOW), both.nodewise.earliest(entry, NOW)
    assert times[0] is not None
    assert times[1] is None or times[0] <= times[1]


def test_a_promise_that_cannot_be_kept_is_lost() -> None:
    both = world([(0, 4, 30)], [gang("p", 8, promised=Reservation(NOW + 5))])
    assert [entry.uid for entry in both.counted.lost] == ["p"]
    assert [entry.uid for entry in both.nodewise.lost] == ["p"]


def test_promises_move_up_when_room_comes_back_early_and_only_then() -> None:
    both = world([(0, 4, 21)], [gang("p", 8, walltime=9.0, promised=Reservation(NOW + 20))])
    entry = both.state.queue.entries["p"]
    assert both.counted.earlier(entry, NOW) is None
    holding = both.state.running["r0"]
    both.counted.ended(holding, 4, NOW + 3)
    assert both.counted.earlier(entry, NOW + 3) == NOW + 3


def test_revoking_leaves_nothing_behind() -> None:
    both = world([], [gang("p", 8, walltime=9.0, promised=Reservation(NOW + 20))])
    entry = both.state.queue.entries["p"]
    assert both.counted.profile.at(NOW + 20) == 2
    both.counted.revoke(entry)
    assert set(both.counted.profile.free) == {10}
    assert not both.counted.kept


def test_room_is_kept_for_the_one_who_waits_for_somebody_who_overstays() -> None:
    both = world([(0, 4, 1)], [gang("p", 10, walltime=9.0, promised=Reservation(NOW))])
    entry = both.state.queue.entries["p"]
    both.counted.overdue(entry, NOW + 2)
    assert both.counted.kept["p"] == (NOW + 2, NOW + 11)
    assert both.counted.profile.at(NOW + 10) <= 0
    assert both.counted.profile.at(NOW + 11) == 10
