"""The table of types agrees with the clients people use, and what it does to objects."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from muster.local.api import builtin, types

MODULES = {"rbac": "rbac_v1", "storage": "storage_v1", "meta": "meta_v1"}


@pytest.mark.parametrize("kind", sorted({r.type for r in builtin.catalogue(native_gang=True).by_path.values()}))
def test_every_kind_has_exactly_the_fields_the_client_knows(kind: str) -> None:
    waiting, seen = [kind], set()
    while waiting:
        name = waiting.pop()
        group, version, short = name.split(".")
        model = getattr(importlib.import_module(f"lightkube.models.{group}_{version}"), short, None)
        found = types.fields(name)
        if model is not None and hasattr(model, "__dataclass_fields__"):
            known = {f.metadata.get("json", n) for n, f in model.__dataclass_fields__.items()}
            assert set(found) == known, name
        seen.add(name)
        waiting += [f.base for f in found.values() if not f.primitive and f.base not in seen]


def test_unknown_fields_and_nulls_are_dropped_and_unknown_ones_told() -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "x", "labels": None, "colour": 1},
        "spec": {"containers": [{"name": "c", "imgae": "x"}, {"name": "d", "env": [{"name": "A", "vaule": 1}]}]},
    }
    unknown = types.conform(obj, "core.v1.Pod")
    assert unknown == ["metadata.colour", "spec.containers[0].imgae", "spec.containers[1].env[0].vaule"]
    assert obj["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeName": 1}, "cannot unmarshal number into Go struct field spec.PodSpec.nodeName of type string"),
        ({"containers": {}}, "cannot unmarshal object into Go struct field spec.containers of type []"),
        ({"priority": 1.5}, "cannot unmarshal number 1.5 into Go struct field spec.priority of type int64"),
        ({"hostNetwork": "yes"}, "cannot unmarshal string into Go struct field spec.PodSpec.hostNetwork of type bool"),
        ({"nodeSelector": {"a": 1}}, "cannot unmarshal number into Go struct field"),
        ([], "cannot unmarshal array into Go struct field spec of type core.PodSpec"),
    ],
)
def test_wrong_types_are_told_with_their_place(spec: Any, words: str) -> None:
    with pytest.raises(types.TypeMismatchError) as refused:
        types.conform({"spec": spec}, "core.v1.Pod")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("written", "kept"),
    [("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), (2, "2"), ("1e3", "1e3"), (0.25, "250m")],
)
def test_quantities_are_kept_in_their_shortest_form(written: Any, kept: str) -> None:
    obj = {"spec": {"overhead": {"cpu": written}}}
    types.conform(obj, "core.v1.Pod")
    assert obj["spec"]["overhead"] == {"cpu": kept}


@pytest.mark.parametrize(
    ("obj", "kind"),
    [
        ({"spec": {"overhead": {"cpu": "lots"}}}, "core.v1.Pod"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "core.v1.Pod"),
        ({"data": {"a": "not base64!"}}, "core.v1.Secret"),
    ],
)
def test_texts_that_say_nothing_are_refused(obj: Any, kind: str) -> None:
    with pytest.raises(types.MalformedError):
        types.conform(obj, kind)
