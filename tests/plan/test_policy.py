"""Policies by name, and the orders they are made of."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.plan.policy import BASES, DAY, ORDERS, parse
from tests.plan.small import gang


@pytest.mark.parametrize(
    ("text", "reservations", "passing", "scan", "whole"),
    [
        ("fcfs", 0, False, None, True),
        ("easy", 1, True, None, True),
        ("easy-4", 4, True, None, True),
        ("easy-sjbf", 1, True, "sjf", True),
        ("conservative", None, True, None, True),
        ("pods", 0, False, None, False),
    ],
)
def test_bases(text: str, reservations: int | None, passing: bool, scan: str | None, whole: bool) -> None:
    policy = parse(text)
    assert (policy.name, policy.reservations, policy.passing, policy.whole) == (text, reservations, passing, whole)
    assert (policy.scan.name if policy.scan else None) == scan
    assert [order.name for order in policy.order] == ["fifo"]
    assert (policy.age_bound, policy.moves) == (DAY, False)


@given(st.sampled_from([*BASES, "easy-7"]), st.lists(st.sampled_from(sorted(ORDERS)), min_size=1, max_size=3))
def test_orders_compose_in_the_order_given(base: str, names: list[str]) -> None:
    text = f"{base}:{'+'.join(names)}"
    policy, plain = parse(text), parse(base)
    assert [order.name for order in policy.order] == names
    assert policy.name == text
    assert (policy.reservations, policy.scan, policy.whole) == (plain.reservations, plain.scan, plain.whole)
    assert policy.moves == bool({"wfp3", "unicef", "laxity"} & set(names))


@pytest.mark.parametrize("text", ["", "hard", "easy-0", "easy--1", "easy-x", "easy-", "fcfs-2", "easy-1.5", ":fifo"])
def test_an_unknown_base_is_told_what_exists(text: str) -> None:
    with pytest.raises(ValueError, match=r"^no policy '.*'; there are fcfs, easy, .* and easy-N"):
        parse(text)


@pytest.mark.parametrize("text", ["easy:best", "easy:fifo+best", "easy:fifo+", "easy:+fifo"])
def test_an_unknown_order_is_told_what_exists(text: str) -> None:
    with pytest.raises(ValueError, match=r"^no order '.*' in policy 'easy:.*'; there are fifo, priority, sjf"):
        parse(text)


def first(order: str, now: float = 100.0) -> str:
    """Whom an order looks at first, of four that differ."""
    gangs = [
        gang("old", 2, submitted=0.0, walltime=50.0),
        gang("urgent", 2, submitted=10.0, priority=5, deadline=200.0, walltime=90.0, served=5.0),
        gang("short", 2, submitted=20.0, walltime=5.0, waiting_cost=1.0, served=5.0),
        gang("wide", 64, submitted=5.0, walltime=50.0, deadline=210.0, waiting_cost=1.0, served=5.0),
    ]
    return min(gangs, key=lambda one: ORDERS[order].key(one, now)).uid


@pytest.mark.parametrize(
    ("order", "uid"),
    [
        ("fifo", "old"),
        ("priority", "urgent"),
        ("sjf", "short"),
        ("wfp3", "short"),
        ("unicef", "short"),
        ("edf", "urgent"),
        ("laxity", "urgent"),
        ("cost", "short"),
        ("las", "old"),
    ],
)
def test_whom_each_order_looks_at_first(order: str, uid: str) -> None:
    assert first(order) == uid


def test_waiting_moves_the_orders_that_say_so_and_no_other() -> None:
    """Of two gangs, one long and early, one short and late."""
    long, short = gang("long", 4, walltime=1000.0), gang("short", 4, submitted=99.0, walltime=10.0, deadline=500.0)
    for order in ORDERS.values():
        changed = len({order.key(long, now) < order.key(short, now) for now in (100.0, 101.0, 150.0, 5000.0)}) > 1
        assert not changed or order.moves, order.name
    assert ORDERS["wfp3"].key(long, 101.0) < ORDERS["wfp3"].key(short, 99.0)


def test_unknown_lengths_and_no_deadlines_come_last() -> None:
    nobody_knows = gang("g", 1, walltime=None)
    assert ORDERS["sjf"].key(nobody_knows, 0.0) == inf
    assert ORDERS["edf"].key(nobody_knows, 0.0) == inf
    assert ORDERS["laxity"].key(nobody_knows, 0.0) == inf
    assert [ORDERS[name].key(nobody_knows, 9.0) for name in ("wfp3", "unicef", "cost")] == [0, 0, 0]


def test_of_equal_deadlines_the_longer_run_has_less_slack() -> None:
    long, short = (gang("g", 1, walltime=walltime, deadline=100.0) for walltime in (50.0, 10.0))
    assert ORDERS["laxity"].key(long, 0.0) < ORDERS["laxity"].key(short, 0.0)
