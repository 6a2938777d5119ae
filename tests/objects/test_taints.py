"""Tolerations against taints, as Kubernetes matches them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.taints import (
    Taint,
    Toleration,
    first_untolerated,
    forbids,
    tolerated,
    untolerated_preferences,
    with_default_tolerations,
)

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="a100", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="a100"), True),
        (Toleration(key="gpu", value="h100"), False),
        (Toleration(key="gpu"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(value="a100"), True),
        (Toleration(key="gpu", operator="In", value="a100"), False),
    ],
)
def test_tolerations(toleration: Toleration, covers: bool) -> None:
    assert toleration.tolerates(GPU) is covers


@pytest.mark.parametrize(
    ("operator", "taint", "limit", "covers"),
    [
        ("Lt", "5", "10", True),
        ("Lt", "10", "10", False),
        ("Gt", "950", "900", True),
        ("Gt", "-5", "-6", True),
        ("Gt", "high", "1", False),
        ("Lt", "5", "", False),
        ("Lt", "05", "10", False),
        ("Lt", "+5", "10", False),
        ("Gt", "9223372036854775808", "1", False),
    ],
)
def test_numeric_tolerations(operator: str, taint: str, limit: str, covers: bool) -> None:
    toleration = Toleration(key="sla", operator=operator, value=limit)
    assert toleration.tolerates(Taint(key="sla", value=taint, effect="NoSchedule")) is covers


def test_only_preferences_let_pods_in() -> None:
    assert [forbids(Taint(key="k", effect=effect)) for effect in ("NoSchedule", "NoExecute")] == [True, True]
    wish = Taint(key="k", effect="PreferNoSchedule")
    assert not forbids(wish)
    assert first_untolerated([wish], []) is None
    assert untolerated_preferences([wish, GPU], []) == 1
    assert untolerated_preferences([wish], [Toleration(operator="Exists")]) == 0
    assert untolerated_preferences([wish], [Toleration(operator="Exists", effect="NoSchedule")]) == 1


def test_the_first_untolerated_taint_is_the_reason() -> None:
    other = Taint(key="other", effect="NoExecute")
    assert first_untolerated([GPU, other], [Toleration(key="gpu", operator="Exists")]) == other
    assert first_untolerated([other, GPU], []) == other
    assert first_untolerated([GPU, other], [Toleration(operator="Exists")]) is None


def test_admission_adds_grace_only_where_it_is_missing() -> None:
    keys = [each.key for each in with_default_tolerations([])]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    own = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", toleration_seconds=5)
    completed = with_default_tolerations([own])
    assert [each.toleration_seconds for each in completed] == [5, 300]
    everything = [Toleration(operator="Exists")]
    assert with_default_tolerations(everything) == everything


taints = st.builds(
    Taint,
    key=st.sampled_from("ab"),
    value=st.sampled_from(["", "1", "2"]),
    effect=st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt"]),
    value=st.sampled_from(["", "1", "2"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
)


@given(taints, st.lists(tolerations, max_size=4), tolerations)
def test_more_tolerations_tolerate_no_less(taint: Taint, some: list[Toleration], more: Toleration) -> None:
    if tolerated(taint, some):
        assert tolerated(taint, [*some, more])


@given(st.lists(taints, max_size=4), st.lists(tolerations, max_size=4), st.randoms())
def test_whether_a_pod_is_let_in_does_not_depend_on_order(
    marks: list[Taint], some: list[Toleration], rng: object
) -> None:
    before = first_untolerated(marks, some) is None
    rng.shuffle(marks)  # type: ignore[attr-defined]
    rng.shuffle(some)  # type: ignore[attr-defined]
    assert (first_untolerated(marks, some) is None) is before
