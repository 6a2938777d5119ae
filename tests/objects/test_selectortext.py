"""The text grammars of list and watch requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.selectors import EVERYTHING, Requirement, Selector, SelectorError
from muster.objects.selectortext import parse_field_selector, parse_label_selector
from tests.objects.test_selectors import label_maps, label_requirements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("a=b", (Requirement("a", "In", ("b",)),)),
        ("a==b", (Requirement("a", "In", ("b",)),)),
        (" a = b ", (Requirement("a", "In", ("b",)),)),
        ("a=", (Requirement("a", "In", ("",)),)),
        ("a=,b", (Requirement("a", "In", ("",)), Requirement("b", "Exists"))),
        ("a!=b", (Requirement("a", "NotIn", ("b",)),)),
        ("a", (Requirement("a", "Exists"),)),
        ("!a", (Requirement("a", "DoesNotExist"),)),
        ("! a", (Requirement("a", "DoesNotExist"),)),
        ("a>5,b<3", (Requirement("a", "Gt", ("5",)), Requirement("b", "Lt", ("3",)))),
        ("a in (x,y)", (Requirement("a", "In", ("x", "y")),)),
        ("a in ( y , x , y )", (Requirement("a", "In", ("x", "y")),)),
        ("a in (in,notin)", (Requirement("a", "In", ("in", "notin")),)),
        ("in in (x)", (Requirement("in", "In", ("x",)),)),
        ("a notin ()", (Requirement("a", "NotIn", ("",)),)),
        ("a in (,)", (Requirement("a", "In", ("",)),)),
        ("a in (x,,y)", (Requirement("a", "In", ("", "x", "y")),)),
        ("a in(x)", (Requirement("a", "In", ("x",)),)),
        ("app.kubernetes.io/name=web", (Requirement("app.kubernetes.io/name", "In", ("web",)),)),
    ],
)
def test_label_selectors(text: str, expected: tuple[Requirement, ...]) -> None:
    assert parse_label_selector(text) == Selector(expected)


@pytest.mark.parametrize(
    "text",
    [
        *(",", "a,", ",a", "a,,b", "a=b c", "a in x", "a in (x", "a in (x y)", "a in (=)", "a notin"),
        *("a=b=c", "a=!b", "!a=b", "!", "!!a", "a>x", "a>1,a<", "a=>1", "a<=1", "=b", "(a)", "a)", "a b"),
        *("-a", "a=-", "a in (x),", "x/y/z=1"),
    ],
)
def test_malformed_label_selectors_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert "selector" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.lists(label_requirements, max_size=4), label_maps)
def test_label_selectors_round_trip(requirements: list[Requirement], labels: dict[str, str]) -> None:
    selector = Selector(tuple(requirements))
    again = parse_label_selector(str(selector))
    assert again.matches(labels) == selector.matches(labels)
    assert str(again) == str(selector)


@given(st.text("ab=!<>(), in", max_size=12))
def test_any_label_text_parses_or_is_refused_cleanly(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert str(parse_label_selector(str(selector))) == str(selector)
    assert (selector == EVERYTHING) is (not text.strip())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("spec.nodeName=n1", (("spec.nodeName", "n1", True),)),
        ("spec.nodeName==n1", (("spec.nodeName", "n1", True),)),
        ("spec.nodeName=", (("spec.nodeName", "", True),)),
        ("a!=b,c=d", (("a", "b", False), ("c", "d", True))),
        (",a=b,,", (("a", "b", True),)),
        (r"a=x\,y\=z\\", (("a", r"x,y=z" + "\\", True),)),
        ("a=b c", (("a", "b c", True),)),
        ("a=!b", (("a", "!b", True),)),
    ],
)
def test_field_selectors(text: str, expected: tuple[tuple[str, str, bool], ...]) -> None:
    assert parse_field_selector(text).terms == expected


@pytest.mark.parametrize("text", ["a", "a=b,c", r"a=b\x", "a=b=c", "a=b\\", "a>1"])
def test_malformed_field_selectors_are_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="field selector"):
        parse_field_selector(text)


def test_fields_that_are_absent_read_as_empty() -> None:
    fields = {"spec.nodeName": "n1"}
    selector = parse_field_selector("spec.nodeName=n1,status.phase!=Failed,metadata.name=")
    assert selector.matches(lambda path: fields.get(path, ""))
    assert selector.exact("spec.nodeName") == "n1"
    assert selector.exact("status.phase") is None
    assert not parse_field_selector("status.phase=Running").matches(lambda path: fields.get(path, ""))


@given(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.text(max_size=5), st.booleans()), max_size=3))
def test_field_selectors_round_trip(terms: list[tuple[str, str, bool]]) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace(",", r"\,").replace("=", r"\=")

    text = ",".join(f"{path}{'=' if equal else '!='}{escaped(value)}" for path, value, equal in terms)
    assert parse_field_selector(text).terms == tuple(terms)
