"""Allocation under balance, distance and togetherness: every answer obeys, single constraints are exact."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.plan.labels import Ints
from muster.plan.limits import UNLIMITED, Limits, Quota
from muster.plan.spread import allocate

codes = st.integers(-1, 2)


def array(numbers: object) -> Ints:
    """An array as the core passes them."""
    return np.array(numbers, dtype=np.int64)


def quota(domain: Ints, present: list[int], skew: int, least: int = 1, eligible: list[bool] | None = None) -> Quota:
    """A balance over these domains."""
    return Quota(domain, array(present), np.array(eligible or [True] * len(present)), skew, True, least)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Ints, int, Limits]:
    """Few nodes with few slots under any mixture of constraints."""
    size = draw(st.integers(1, 5))
    column = st.lists(codes, min_size=size, max_size=size).map(array)
    quotas = st.builds(
        quota,
        column,
        st.lists(st.integers(0, 3), min_size=3, max_size=3),
        st.integers(1, 2),
        st.integers(1, 4),
        st.lists(st.booleans(), min_size=3, max_size=3),
    )
    limits = Limits(
        apart=tuple(draw(st.lists(column, max_size=2))),
        together=tuple(draw(st.lists(column, max_size=2))),
        quotas=tuple(draw(st.lists(quotas, max_size=2))),
    )
    slots = array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    return slots, draw(st.integers(1, 6)), limits


def obeys(counts: Ints, limits: Limits) -> bool:
    """Whether an allocation, however it was found, is within the limits."""
    used = np.flatnonzero(counts)
    for column in limits.apart:
        if any(counts[column == domain].sum() > 1 for domain in range(3)):
            return False
    for column in limits.together:
        if len(set(column[used].tolist())) > 1 or (column[used] < 0).any():
            return False
    return all(_balanced(counts, each) for each in limits.quotas)


def _balanced(counts: Ints, quota: Quota) -> bool:
    if counts[quota.domain < 0].any():
        return False
    added = array([counts[quota.domain == domain].sum() for domain in range(quota.present.size)])
    level = quota.present + added
    eligible = level[quota.eligible]
    floor = eligible.min() if eligible.size >= max(1, quota.min_domains) else 0
    grown = added > 0
    return not (grown & ~quota.eligible).any() and bool((level[grown] <= floor + quota.max_skew).all())


def exact(limits: Limits) -> bool:
    """Whether at most one constraint is left once the domain to share is chosen."""
    return len(limits.apart) + len(limits.quotas) <= 1


@settings(max_examples=500)
@given(problems())
def test_every_answer_obeys_and_single_constraints_never_miss_one(problem: tuple[Ints, int, Limits]) -> None:
    slots, need, limits = problem
    before = slots.copy()
    found = allocate(slots, need, limits)
    assert (slots == before).all()
    if found is not None:
        nodes, counts = found
        assert (np.diff(nodes) > 0).all()
        assert (counts > 0).all()
        whole = np.zeros_like(slots)
        whole[nodes] = counts
        assert whole.sum() == need
        assert (whole <= slots).all()
        assert obeys(whole, limits)
    elif exact(limits):
        ways = product(*(range(int(each) + 1) for each in slots))
        assert not any(sum(way) == need and obeys(array(way), limits) for way in ways)


def _levels(found: tuple[Ints, Ints] | None, domain: Ints, present: list[int]) -> list[int]:
    assert found is not None
    level = array(present)
    np.add.at(level, domain[found[0]], found[1])
    return [int(each) for each in level]


def test_no_limits_fill_few_nodes() -> None:
    found = allocate(array([1, 4, 2, 4]), 6, UNLIMITED)
    assert found is not None
    assert [part.tolist() for part in found] == [[1, 2], [4, 2]]


def test_balance_raises_the_floor_as_far_as_it_must() -> None:
    domain = array([0, 0, 1, 1, 2, 2])
    slots = array([9] * 6)
    assert sorted(_levels(allocate(slots, 9, Limits(quotas=(quota(domain, [0, 0, 0], 1),))), domain, [0, 0, 0])) == [
        3,
        3,
        3,
    ]
    filled = _levels(allocate(slots, 6, Limits(quotas=(quota(domain, [4, 1, 0], 1),))), domain, [4, 1, 0])
    assert filled[0] == 4
    assert sorted(filled[1:]) == [5, 6] or filled[1:] in ([4, 3], [3, 4])


def test_a_full_domain_holds_the_others_back() -> None:
    domain = array([0, 1, 2])
    limits = Limits(quotas=(quota(domain, [0, 0, 0], 2),))
    assert _levels(allocate(array([1, 99, 99]), 7, limits), domain, [0, 0, 0]) == [1, 3, 3]
    assert allocate(array([1, 99, 99]), 8, limits) is None


def test_too_few_domains_count_as_an_empty_one() -> None:
    domain = array([0, 1])
    limits = Limits(quotas=(quota(domain, [0, 0], 2, least=3),))
    assert _levels(allocate(array([99, 99]), 4, limits), domain, [0, 0]) == [2, 2]
    assert allocate(array([99, 99]), 5, limits) is None


def test_together_takes_the_tightest_domain_and_can_be_balanced_inside() -> None:
    zone, rack = array([0, 0, 1, 1, 1]), array([0, 1, 2, 3, 3])
    slots = array([2, 2, 3, 3, 3])
    found = allocate(slots, 4, Limits(together=(zone,)))
    assert found is not None
    assert found[0].tolist() == [0, 1]
    found = allocate(slots, 6, Limits(together=(zone,), quotas=(quota(rack, [0] * 4, 6),)))
    assert found is not None
    assert set(found[0].tolist()) <= {2, 3, 4}


def test_nodes_outside_all_domains_are_not_kept_apart() -> None:
    found = allocate(array([3, 3, 3]), 5, Limits(apart=(array([-1, 0, 0]),)))
    assert found is None
    found = allocate(array([3, 3, 3]), 4, Limits(apart=(array([-1, 0, 0]),)))
    assert found is not None
    assert int(found[1][found[0] == 0][0]) == 3


@pytest.mark.parametrize("need", [1, 999, 4000, 10_000])
def test_thousands_of_members_are_balanced_exactly(need: int) -> None:
    rng = np.random.default_rng(need)
    domain = rng.integers(0, 40, 10_000)
    slots = rng.integers(0, 9, 10_000)
    present = rng.integers(0, 5, 40).tolist()
    level = np.array(_levels(allocate(slots, need, Limits(quotas=(quota(domain, present, 1),))), domain, present))
    grown = level > np.array(present)
    assert (level[grown] <= level.min() + 1).all()
