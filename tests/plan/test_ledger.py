"""Taking, giving and trials: after any history the books are those of what was kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.node import Node
from muster.plan.ledger import COMPACT_AFTER, Ledger

CAPACITY = [{"cpu": 8, "gpu": 4}, {"cpu": 16}, {"gpu": 2, "memory": 100}]


def ledger() -> Ledger:
    return Ledger([Node(f"n{i}", has) for i, has in enumerate(CAPACITY)])


def ints(*numbers: int) -> np.typing.NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def test_resources_a_node_has_not_are_zero() -> None:
    book = ledger()
    assert book.free[book.resources["gpu"]].tolist() == [4, 0, 2]
    assert book.free[book.resources["memory"]].tolist() == [0, 0, 100]


@given(st.data())
def test_trials_leave_what_was_kept_and_nothing_else(data: st.DataObject) -> None:
    """Random takes and nested trials, against plain copies of the table."""
    book = ledger()
    copies: list[tuple[int, np.typing.NDArray[np.int64]]] = []
    for _ in range(data.draw(st.integers(1, 15))):
        act = data.draw(st.sampled_from(["take", "give", "mark", "undo", "keep"]))
        if act in {"take", "give"}:
            node, count = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 3))
            getattr(book, act)(ints(node), ((0, 1), (1, 2)), ints(count))
        elif act == "mark":
            copies.append((book.mark(), book.free.copy()))
        elif copies:
            mark, before = copies.pop()
            after = before if act == "undo" else book.free.copy()
            getattr(book, act)(mark)
            assert (book.free == after).all()
    while copies:
        mark, before = copies.pop()
        book.undo(mark)
        assert (book.free == before).all()
    assert not book.log, "nothing is remembered outside trials"


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), max_size=12), st.booleans())
def test_whoever_follows_the_changes_sees_them_all(takes: list[tuple[int, int]], trial: bool) -> None:
    book = ledger()
    copy, cursor = book.free.copy(), book.now
    mark = book.mark() if trial else None
    for node, count in takes:
        book.take(ints(node), ((0, 1),), ints(count))
    if mark is not None:
        book.undo(mark)
    changed = book.since(cursor)
    assert changed is not None
    for nodes in changed:
        copy[:, nodes] = book.free[:, nodes]
    assert (copy == book.free).all()


def test_what_is_too_long_ago_to_tell_is_not_told() -> None:
    book = ledger()
    for _ in range(COMPACT_AFTER + 1):
        book.take(ints(0), (), ints(1))
    assert book.since(0) is None
    assert book.since(book.now) == []
    assert len(book.since(book.now - 3) or []) == 3


def test_a_mark_inside_an_undone_trial_cannot_be_kept() -> None:
    book = ledger()
    outer = book.mark()
    book.take(ints(0), ((0, 1),), ints(1))
    inner = book.mark()
    book.undo(outer)
    with pytest.raises(ValueError, match="undone already"):
        book.keep(inner)


def test_a_node_that_shrinks_under_its_tenants_is_overdrawn_until_it_grows_back() -> None:
    book = ledger()
    gpu = book.resources["gpu"]
    book.take(ints(0), ((gpu, 1),), ints(3))
    book.resize(0, Node("n0", {"cpu": 8, "gpu": 2}))
    assert (book.free[gpu, 0], book.overdrawn) == (-1, True)
    book.resize(0, Node("n0", {"cpu": 8, "gpu": 3}))
    assert (book.free[gpu, 0], book.capacity[gpu, 0], book.overdrawn) == (0, 3, False)


def test_no_nodes_is_a_ledger_too() -> None:
    book = Ledger([])
    book.audit()
    assert (book.free.shape, book.overdrawn) == ((0, 0), False)
