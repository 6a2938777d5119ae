"""What a gang says about itself: its length, its members, and the most a role can use."""

from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.rules import ANYWHERE, HostPort, PodSelector, PodTerm, Rules, Spread

NEAR = PodTerm(PodSelector(), "rack")


@pytest.mark.parametrize(
    ("walltime", "estimate", "length"),
    [(None, None, None), (60.0, None, 60.0), (None, 40.0, 40.0), (60.0, 40.0, 40.0), (30.0, 40.0, 30.0)],
)
def test_a_gang_is_as_long_as_its_limit_or_what_was_learned(
    walltime: float | None, estimate: float | None, length: float | None
) -> None:
    assert Gang("g", (), 0.0, walltime=walltime, estimate=estimate).length == length


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4))
def test_its_members_are_the_quorum_and_not_the_surplus(sizes: list[tuple[int, int]]) -> None:
    roles = tuple(Role(f"r{i}", least, {}, least + more) for i, (least, more) in enumerate(sizes))
    assert Gang("g", roles, 0.0).members == sum(least for least, _ in sizes)
    assert all(role.most == role.min + more for role, (_, more) in zip(roles, sizes, strict=True))


def test_a_role_without_a_max_is_rigid() -> None:
    assert Role("r", 4, {}).most == 4


def test_what_was_planned_with_does_not_change_under_the_plan() -> None:
    with pytest.raises(FrozenInstanceError):
        Role("r", 1, {}).min = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("rules", "narrows"),
    [
        (ANYWHERE, False),
        (Rules(node_selector=(("a", "b"),)), False),
        (Rules(host_ports=(HostPort(80),)), True),
        (Rules(near=(NEAR,)), True),
        (Rules(away=(NEAR,)), True),
        (Rules(spread=(Spread("rack", 1, PodSelector()),)), True),
    ],
)
def test_rules_say_whether_they_look_at_pods(rules: Rules, narrows: bool) -> None:
    assert rules.narrows_by_pods() == narrows


def test_equal_rules_are_one_key() -> None:
    one, other = (Rules(near=(NEAR,), node_selector=(("a", "b"),)) for _ in range(2))
    assert {one: 1}[other] == 1
    assert all(hash(getattr(one, field.name)) is not None for field in fields(Rules))
