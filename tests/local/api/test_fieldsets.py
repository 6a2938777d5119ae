"""Sets of fields, and who owns them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.local.api import fieldsets
from muster.local.api.fieldsets import Shape

SPEC = Shape("core.v1.PodSpec")
NAMES = st.sampled_from(["a", "b", "c"])
PORTS = st.lists(
    st.fixed_dictionaries({"containerPort": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}),
    max_size=2,
    unique_by=lambda p: (p["containerPort"], p.get("protocol", "TCP")),
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES}, optional={"image": NAMES, "ports": PORTS, "args": st.lists(NAMES, max_size=2)}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda c: str(c["name"]),
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={"nodeName": NAMES, "nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2)},
)


@given(SPECS)
def test_the_notation_says_the_same_set(spec: Any) -> None:
    fields = fieldsets.fields_of(spec, SPEC)
    assert fieldsets.unpacked(fieldsets.packed(fields)) == fields


@given(SPECS, SPECS)
def test_laying_one_over_another_keeps_every_field_of_both(live: Any, applied: Any) -> None:
    laid = fieldsets.merged(live, applied, SPEC)
    wanted = fieldsets.fields_of(applied, SPEC)
    have = fieldsets.fields_of(laid, SPEC)
    assert wanted <= have
    for path in wanted:
        if not path[-1].startswith("k:"):
            assert fieldsets.value_at(laid, path, SPEC) == fieldsets.value_at(applied, path, SPEC)
    assert fieldsets.merged(laid, applied, SPEC) == laid


@given(SPECS, st.data())
def test_taking_fields_away_takes_these_and_no_others(spec: Any, data: st.DataObject) -> None:
    leaves = sorted(p for p in fieldsets.fields_of(spec, SPEC) if len(p) <= 3 and p[-1] != "f:name")
    gone = set(data.draw(st.lists(st.sampled_from(leaves), unique=True))) if leaves else set()
    left = fieldsets.fields_of(fieldsets.without(spec, gone, SPEC), SPEC)
    expected = {p for p in fieldsets.fields_of(spec, SPEC) if not any(p[: len(g)] == g for g in gone)}
    assert left - {("f:containers",)} == expected - {("f:containers",)}


def test_list_items_are_told_apart_by_their_keys_and_shown_so() -> None:
    spec = {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}], "tolerations": [{"key": "x"}]}
    fields = {fieldsets.shown(p) for p in fieldsets.fields_of(spec, SPEC)}
    assert '.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort' in fields
    assert ".tolerations" in fields, "a list without keys is one value"
