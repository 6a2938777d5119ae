"""Every sample exactly once, for any history of sizes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.elastic.order import Cursor, Permutation, leases, seed_of, window, windows


@given(st.integers(1, 400), st.integers(0, 2**40), st.integers(0, 9))
def test_the_order_is_a_permutation(size: int, seed: int, turn: int) -> None:
    order = Permutation(size, seed, turn)
    assert sorted(map(order, range(size))) == list(range(size))


def test_orders_of_different_passes_and_seeds_differ() -> None:
    orders = {tuple(map(Permutation(64, seed, turn), range(64))) for seed in range(4) for turn in range(4)}
    assert len(orders) == 16


def test_an_index_outside_is_refused() -> None:
    with pytest.raises(IndexError):
        Permutation(5, 0, 0)(5)


@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 3), st.data())
def test_any_history_uses_every_sample_once_per_pass(size: int, batch: int, passes: int, data: st.DataObject) -> None:
    used: Counter[tuple[int, int]] = Counter()
    cursor = Cursor()
    while cursor.turn < passes:
        world = data.draw(st.integers(1, 9))
        step = window(cursor, size, batch)
        order = Permutation(size, 1, step.turn)
        parts = [step.part(world, rank) for rank in range(world)]
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        if data.draw(st.booleans()):  # the step is lost and done again in another world
            continue
        used.update((step.turn, order(i)) for part in parts for i in part)
        cursor = step.after
    assert used == Counter((t, i) for t in range(passes) for i in range(size))


@given(st.integers(1, 100), st.integers(1, 30), st.integers(0, 99))
def test_windows_go_on_where_the_cursor_is(size: int, batch: int, skip: int) -> None:
    steps = list(windows(Cursor(), size, batch, 2))
    at = skip % len(steps)
    assert list(windows(steps[at].after, size, batch, 2)) == steps[at + 1 :]


@given(st.dictionaries(st.integers(0, 9), st.none() | st.integers(1, 5)), st.integers(1, 6))
def test_unfinished_shards_are_leased_to_exactly_one(done: dict[int, int | None], world: int) -> None:
    dealt = [s for lease in leases(done, 10, world) for s in lease]
    assert sorted(dealt) == [s for s in range(10) if done.get(s, 0) is not None]


def test_seeds_depend_on_every_part() -> None:
    assert len({seed_of(a, b, c) for a in range(5) for b in range(5) for c in range(5)}) == 125
