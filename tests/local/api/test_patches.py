"""Patches: merge, JSON and strategic. None may change the object it is given."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.local.api.errors import ApiError
from muster.local.api.patches import json_patch, merge
from muster.local.api.strategic import strategic_merge

VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("ab", min_size=1, max_size=2), VALUES, max_size=4)


def difference(old: Any, new: Any) -> Any:
    """A merge patch from one object to another."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    return {**patch, **{k: difference(old.get(k), v) for k, v in new.items() if k not in old or old[k] != v}}


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leads_from_any_object_to_any_other(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    assert merge(old, difference(old, new)) == new
    assert old == before


def test_json_patch_errors_are_the_clients_fault() -> None:
    patch: Any
    for patch in ({}, [1], [{"op": "fly"}], [{"op": "add"}]):
        with pytest.raises(ApiError) as refused:
            json_patch({"a": 1}, patch)
        assert refused.value.code in (400, 422)
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1}, [{"op": "remove", "path": "/b"}])
    assert refused.value.code == 422


POD = "core.v1.PodSpec"
TWO = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [TWO["containers"][0], {"name": "b", "image": "2"}]},
        ),
        ({"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [TWO["containers"][1]]}),
        ({"containers": [{"$patch": "replace"}, {"name": "c"}]}, {"containers": [{"name": "c"}]}),
        (
            {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "b", "image": "2"}],
            },
            {"containers": [{"name": "b", "image": "2"}, TWO["containers"][0]]},
        ),
        (
            {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
            {
                "containers": [
                    {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                    TWO["containers"][1],
                ]
            },
        ),
        ({"tolerations": [{"key": "x"}]}, {**TWO, "tolerations": [{"key": "x"}]}),
        ({"$patch": "replace", "hostname": "h"}, {"hostname": "h"}),
        ({"containers": None}, {}),
    ],
)
def test_strategic_merge_by_keys_and_directives(patch: Any, expected: Any) -> None:
    before = copy.deepcopy(TWO)
    assert strategic_merge(TWO, patch, POD) == expected
    assert before == TWO


def test_strategic_merge_of_sets_of_values_and_of_what_keeps_some_keys_only() -> None:
    meta = {"finalizers": ["a", "b"]}
    assert strategic_merge(meta, {"finalizers": ["c"]}, "meta.v1.ObjectMeta") == {"finalizers": ["a", "b", "c"]}
    gone = {"$deleteFromPrimitiveList/finalizers": ["a"]}
    assert strategic_merge(meta, gone, "meta.v1.ObjectMeta") == {"finalizers": ["b"]}
    old = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    new = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert strategic_merge(old, new, "apps.v1.DeploymentSpec") == {"strategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    "patch",
    [{"$patch": "fly"}, {"containers": [1]}, {"containers": [{}]}, {"strategy": 1, "$retainKeys": 1}],
)
def test_strategic_patches_that_make_no_sense_are_refused(patch: Any) -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge(TWO, patch, POD)
    assert refused.value.code == 400
