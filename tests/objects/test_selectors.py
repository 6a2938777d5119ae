"""Label selectors and node selector terms, as Kubernetes matches them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.decode import from_object
from muster.objects.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    NodeSelector,
    Requirement,
    Selector,
    SelectorError,
    exact_selector,
    integer,
    label_selector,
    node_selector_matches,
    requirement,
)

keys = st.sampled_from(["a", "b", "example.com/c"])
values = st.sampled_from(["", "x", "y", "7", "10"])
label_maps = st.dictionaries(keys, values, max_size=3)
label_requirements = st.one_of(
    st.builds(
        requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=3, unique=True),
    ),
    st.builds(requirement, keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
    st.builds(requirement, keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from([["7"], ["8"]])),
)


@pytest.mark.parametrize(
    ("operator", "written", "present", "matches"),
    [
        ("In", ["x", "y"], "y", True),
        ("In", ["x"], "z", False),
        ("In", ["x"], None, False),
        ("In", [""], "", True),
        ("In", [""], None, False),
        ("NotIn", ["x"], "x", False),
        ("NotIn", ["x"], "y", True),
        ("NotIn", ["x"], None, True),
        ("Exists", [], "", True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], "", False),
        ("Gt", ["5"], "6", True),
        ("Gt", ["5"], "5", False),
        ("Gt", ["5"], "10", True),
        ("Gt", ["5"], "six", False),
        ("Gt", ["5"], None, False),
        ("Lt", ["5"], "4", True),
        ("Lt", ["5"], "5", False),
        ("Lt", ["9223372036854775807"], "9223372036854775808", False),
    ],
)
def test_operators(operator: str, written: list[str], present: str | None, matches: bool) -> None:
    labels = {} if present is None else {"a": present}
    assert requirement("a", operator, written).matches(labels) is matches


@pytest.mark.parametrize(
    ("key", "operator", "written", "said"),
    [
        ("a", "In", [], "In needs values"),
        ("a", "Exists", ["x"], "Exists takes no values"),
        ("a", "Gt", ["x"], "Gt needs one integer"),
        ("a", "Gt", ["1", "2"], "Gt needs one integer"),
        ("a", "Lt", ["9223372036854775808"], "Lt needs one integer"),
        ("a", "=", ["x"], "'=' is not one of"),
        ("a", "In", ["-x"], "'-x' is not a label value"),
        ("a", "In", ["x" * 64], "is not a label value"),
        ("", "Exists", [], "is not a label name"),
        ("a/b/c", "Exists", [], "is not a label name"),
        ("/a", "Exists", [], "is not a label name"),
        ("Upper.com/a", "Exists", [], "is not a label name"),
        ("x" * 64, "Exists", [], "is not a label name"),
    ],
)
def test_what_the_api_server_refuses(key: str, operator: str, written: list[str], said: str) -> None:
    with pytest.raises(SelectorError, match=said):
        requirement(key, operator, written)


def test_absent_selects_nothing_and_empty_everything() -> None:
    assert label_selector(None) == NOTHING
    assert label_selector(from_object({}, LabelSelector)) == EVERYTHING
    assert not NOTHING.matches({})
    assert EVERYTHING.matches({"a": "b"})
    assert exact_selector({}) == EVERYTHING
    assert not NOTHING.narrowed([Requirement("a", "DoesNotExist")]).matches({})


def test_labels_and_expressions_must_all_hold() -> None:
    written = {
        "matchLabels": {"app": "train"},
        "matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["launcher"]}],
    }
    selector = label_selector(from_object(written, LabelSelector))
    assert selector.matches({"app": "train", "role": "worker"})
    assert selector.matches({"app": "train"})
    assert not selector.matches({"app": "train", "role": "launcher"})
    assert not selector.matches({"role": "worker"})


def test_numbers_are_compared_for_nodes_only() -> None:
    written = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
    with pytest.raises(SelectorError, match="for node affinity only"):
        label_selector(from_object(written, LabelSelector))


def _node_matches(terms: object, labels: dict[str, str], name: str = "n1") -> bool:
    selector = from_object({"nodeSelectorTerms": terms}, NodeSelector)
    return node_selector_matches(selector, labels, name)


def _expression(key: str, operator: str, *written: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(written)}


GPU = {"matchExpressions": [_expression("gpu", "Exists")]}
NAMED = {"matchFields": [_expression("metadata.name", "In", "n1")]}


def test_node_terms_are_ored_and_their_requirements_anded() -> None:
    assert _node_matches([GPU, NAMED], {}, "n1")
    assert _node_matches([GPU, NAMED], {"gpu": ""}, "n2")
    assert not _node_matches([GPU, NAMED], {}, "n2")
    assert not _node_matches([{**GPU, **NAMED}], {}, "n1")
    assert _node_matches([{**GPU, **NAMED}], {"gpu": ""}, "n1")


def test_empty_node_terms_match_no_node() -> None:
    assert not _node_matches([], {"gpu": ""})
    assert not _node_matches([{}], {"gpu": ""})
    assert not _node_matches([{"matchExpressions": []}], {"gpu": ""})
    assert _node_matches([{}, GPU], {"gpu": ""})


def test_a_malformed_node_term_matches_no_node_but_leaves_the_others() -> None:
    malformed = {"matchExpressions": [_expression("gpu", "Gt", "many")]}
    assert not _node_matches([malformed], {"gpu": "8"})
    assert _node_matches([malformed, GPU], {"gpu": "8"})
    two_names = {"matchFields": [_expression("metadata.name", "In", "n1", "n2")]}
    assert not _node_matches([two_names], {})
    assert not _node_matches([{"matchFields": [_expression("metadata.name", "Exists")]}], {})


def test_node_fields() -> None:
    assert not _node_matches([{"matchFields": [_expression("metadata.name", "NotIn", "n1")]}], {}, "n1")
    assert _node_matches([{"matchFields": [_expression("metadata.name", "NotIn", "n1")]}], {}, "n2")
    assert not _node_matches([{"matchFields": [_expression("metadata.uid", "In", "u")]}], {})
    assert _node_matches([{"matchFields": [_expression("metadata.uid", "NotIn", "u")]}], {})


def test_integers_as_labels_spell_them() -> None:
    texts = ["0", "+5", "-5", "007", "", "1_0", " 1", "9223372036854775807", "9223372036854775808", "1" * 99]
    assert [integer(text) for text in texts] == [
        *(0, 5, -5, 7, None, None, None),
        *(2**63 - 1, None, None),
    ]


@given(st.lists(label_requirements, max_size=4), label_maps, st.randoms())
def test_order_does_not_matter(requirements: list[Requirement], labels: dict[str, str], rng: object) -> None:
    shuffled = list(requirements)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Selector(tuple(requirements)).matches(labels) == Selector(tuple(shuffled)).matches(labels)


@given(st.lists(label_requirements, max_size=3), label_requirements, label_maps)
def test_more_requirements_select_less(
    requirements: list[Requirement], more: Requirement, labels: dict[str, str]
) -> None:
    selector = Selector(tuple(requirements))
    if selector.narrowed([more]).matches(labels):
        assert selector.matches(labels)


@given(label_requirements, label_maps)
def test_opposites_differ_everywhere(each: Requirement, labels: dict[str, str]) -> None:
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    if each.operator in opposite:
        other = requirement(each.key, opposite[each.operator], each.values)
        assert each.matches(labels) is not other.matches(labels)
