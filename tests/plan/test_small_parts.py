"""The parts that everything rests on, beside the obvious slow way: picking, profile, ledger, forest."""

from itertools import combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.forest import Forest, in_order, natural
from muster.plan.ledger import Ledger
from muster.plan.pick import close_together, fullest_first, tightest
from muster.plan.profile import Profile

rooms = st.lists(st.integers(0, 5), min_size=1, max_size=7)


@given(rooms, st.integers(1, 20))
def test_fullest_first_uses_as_few_entries_as_possible(room: list[int], need: int) -> None:
    assume(sum(room) >= need)
    indices, amounts = fullest_first(np.array(room), need)
    assert amounts.sum() == need
    assert len(set(indices.tolist())) == len(indices)
    assert all(0 < amount <= room[index] for index, amount in zip(indices, amounts, strict=True))
    fewest = next(n for n in range(1, 8) if any(sum(c) >= need for c in combinations(room, n)))
    assert len(indices) == fewest


@given(rooms, st.integers(1, 5))
def test_tightest_is_the_first_with_the_least_that_suffices(room: list[int], need: int) -> None:
    assume(max(room) >= need)
    (index,) = tightest(np.array(room), need).tolist()
    assert room[index] == min(each for each in room if each >= need)
    assert index == room.index(room[index])


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 4)), min_size=1, max_size=9),
    st.integers(1, 12),
)
def test_seats_lie_in_the_smallest_domain_that_holds_them(spots: list[tuple[str, str, int]], need: int) -> None:
    topology = Topology(("zone", "rack"))
    free = {f"n{i}": room for i, (_, _, room) in enumerate(spots)}
    nodes = in_order([Node(f"n{i}", {"x": 9}, {"zone": z, "rack": r}) for i, (z, r, _) in enumerate(spots)], topology)
    slots = np.array([free[node.name] for node in nodes])
    assume(slots.sum() >= need)
    forest = Forest(nodes, topology)
    chosen, counts = close_together(forest, slots, need)
    assert counts.sum() == need
    assert (counts <= slots[chosen]).all()
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    for level in reversed(forest.levels):
        if np.add.reduceat(slots, level.starts).max() >= need:
            assert len(set(level.of_node[chosen].tolist())) == 1
            break


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(-3, 3)), max_size=6),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_profile_is_a_sum_over_time(changes: list[tuple[int, int, int]], slots: int, length: int) -> None:
    profile = Profile(0, 4)
    for begin, span, amount in changes:
        profile.add(begin, begin + span, amount)
    free = [4 + sum(a for b, s, a in changes if b <= t < b + s) for t in range(40)]
    assert [profile.at(t) for t in range(40)] == free
    assert profile.least(2, 2 + length) == min(free[2 : 2 + length])
    starts = (t for t in range(30) if min(free[t : t + length]) >= slots)
    assert profile.earliest(slots, length) == next(starts, None)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=8))
def test_what_is_undone_was_never_taken(takes: list[tuple[int, int, bool]]) -> None:
    ledger = Ledger([Node(f"n{i}", {"cpu": 100}) for i in range(3)])
    kept = np.full(3, 100)
    for node, count, keep in takes:
        mark = ledger.mark()
        ledger.take(np.array([node]), ((0, 2),), np.array([count]))
        if keep:
            ledger.keep(mark)
            kept[node] -= 2 * count
        else:
            ledger.undo(mark)
    assert ledger.free[0].tolist() == kept.tolist()
    assert not ledger.log


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["n10", "n9", "n", "m2"]
    assert sorted(names, key=natural) == sorted(sorted(names), key=natural)
    assert natural("n9") < natural("n10")
