"""Which nodes a role gets, against every other choice there is."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.plan import pick
from muster.plan.forest import Forest, Ints, in_order
from tests.plan.small import RACKS, racks

ROOMS = st.lists(st.integers(0, 6), min_size=1, max_size=7).filter(any)


def column(numbers: list[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)


@given(ROOMS, st.data())
def test_fullest_first_uses_as_few_entries_as_there_is_any_way_to(room: list[int], data: st.DataObject) -> None:
    need = data.draw(st.integers(1, sum(room)))
    indices, amounts = pick.fullest_first(column(room), need)
    assert len(set(indices.tolist())) == len(indices) == len(amounts)
    assert amounts.sum() == need
    assert all(0 < amount <= room[i] for i, amount in zip(indices.tolist(), amounts.tolist(), strict=True))
    fewest = next(n for n in range(1, len(room) + 1) if any(sum(c) >= need for c in combinations(room, n)))
    assert len(indices) == fewest


@given(ROOMS, st.data())
def test_all_but_the_last_entry_are_used_whole_and_the_last_is_the_tightest(
    room: list[int], data: st.DataObject
) -> None:
    need = data.draw(st.integers(1, sum(room)))
    indices, amounts = pick.fullest_first(column(room), need)
    used = dict(zip(indices.tolist(), amounts.tolist(), strict=True))
    partly = [i for i, amount in used.items() if amount < room[i]]
    assert len(partly) <= 1
    for i in partly:
        others = [room[j] for j in range(len(room)) if j not in used and room[j] >= used[i]]
        assert room[i] <= min(others, default=room[i])


@pytest.mark.parametrize(
    ("room", "need", "chosen"),
    [
        ([4, 2, 3], 2, [1]),  # the smallest hole that holds it
        ([4, 4, 4], 8, [0, 1]),  # the first of equals
        ([4, 1, 2, 4], 9, [0, 1, 3]),  # the rest goes where it leaves nothing over
        ([3, 5, 3], 6, [1, 0]),
        ([0, 0, 7], 7, [2]),
    ],
)
def test_the_largest_holes_stay_whole(room: list[int], need: int, chosen: list[int]) -> None:
    assert sorted(pick.fullest_first(column(room), need)[0].tolist()) == sorted(chosen)


@st.composite
def forests(draw: st.DrawFn) -> tuple[Forest, list[int]]:
    sizes = draw(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), min_size=1, max_size=5))
    nodes = in_order(racks(*sizes), RACKS)
    slots = draw(st.lists(st.integers(0, 4), min_size=len(nodes), max_size=len(nodes)).filter(any))
    return Forest(nodes, RACKS), slots


def domains(forest: Forest) -> list[list[tuple[int, int]]]:
    """Spans, from single nodes up to the whole cluster."""
    levels = [[forest.span(depth, d) for d in range(len(forest.levels[depth].names))] for depth in (1, 0)]
    return [[(i, i + 1) for i in range(forest.size)], *levels, [(0, forest.size)]]


@settings(max_examples=300)
@given(forests(), st.data())
def test_close_together_means_the_smallest_domain_that_holds_all(
    given_forest: tuple[Forest, list[int]], data: st.DataObject
) -> None:
    forest, slots = given_forest
    need = data.draw(st.integers(1, sum(slots)))
    nodes, counts = pick.close_together(forest, column(slots), need)
    assert counts.sum() == need
    assert nodes.tolist() == sorted(set(nodes.tolist()))
    assert all(0 < count <= slots[n] for n, count in zip(nodes.tolist(), counts.tolist(), strict=True))
    for spans in domains(forest):
        room = {span: sum(slots[span[0] : span[1]]) for span in spans}
        fitting = [span for span in spans if room[span] >= need]
        if fitting:
            home = next(span for span in spans if span[0] <= nodes[0] < span[1])
            assert all(home[0] <= n < home[1] for n in nodes.tolist())
            assert room[home] == min(room[span] for span in fitting), "the tightest of its level"
            return


@settings(max_examples=200)
@given(forests(), st.data())
def test_inside_a_domain_nobody_leaves_it(given_forest: tuple[Forest, list[int]], data: st.DataObject) -> None:
    forest, slots = given_forest
    depth = data.draw(st.integers(0, 1))
    domain = data.draw(st.integers(0, len(forest.levels[depth].names) - 1))
    begin, end = forest.span(depth, domain)
    room = sum(slots[begin:end])
    if room:
        need = data.draw(st.integers(1, room))
        nodes, counts = pick.close_together(forest, column(slots), need, depth, domain)
        assert begin <= nodes[0]
        assert nodes[-1] < end
        assert counts.sum() == need


def test_what_no_rack_holds_takes_whole_racks_and_the_tightest_rest() -> None:
    nodes = in_order(racks((4,), (4,), (2,), (4, 4)), RACKS)
    chosen, counts = pick.close_together(Forest(nodes, RACKS), column([4, 4, 2, 4, 4]), 10)
    assert [nodes[n].name for n in chosen.tolist()] == ["r2-0", "r3-0", "r3-1"]
    assert counts.tolist() == [2, 4, 4]
