"""Environment and command lines, as Kubernetes expands them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from muster.local.api.access import Object
from muster.local.nodes.process.environment import ConfigError, Facts, command_line, environment, expand

FACTS = Facts("127.64.0.9", "127.0.0.1", {"cpu": "8", "memory": "16Gi"})
POD: Object = {
    "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"a/b": "c"}, "annotations": {}},
    "spec": {"nodeName": "n", "containers": []},
}
OBJECTS = {
    ("configmaps", "c"): {"kind": "ConfigMap", "data": {"A": "1", "B": "2"}},
    ("secrets", "s"): {"kind": "Secret", "data": {"P": base64.b64encode(b"word").decode()}},
}


def env(*variables: Object, **container: Any) -> dict[str, str]:
    spec = {"name": "main", "env": list(variables), **container}
    return environment(POD, spec, FACTS, lambda resource, name: OBJECTS.get((resource, name)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("a$(A)b$(A)", "a1b1"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$A $ $", "$A $ $"),
        ("$(A", "$(A"),
        ("$$$(A)", "$1"),
    ],
)
def test_references(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


def test_later_variables_see_earlier_ones_only() -> None:
    found = env({"name": "X", "value": "$(Y)"}, {"name": "Y", "value": "y"}, {"name": "Z", "value": "$(Y)$(X)"})
    assert found == {"X": "$(Y)", "Y": "y", "Z": "y$(Y)"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "p"),
        ({"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}, "c"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['none']"}}, ""),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.64.0.9"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "127.0.0.1"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}, "16384"),
        ({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}, "1500"),
        ({"configMapKeyRef": {"name": "c", "key": "A"}}, "1"),
        ({"secretKeyRef": {"name": "s", "key": "P"}}, "word"),
    ],
)
def test_values_from_elsewhere(source: Object, expected: str) -> None:
    resources = {"limits": {"cpu": "1500m"}, "requests": {"cpu": "1500m"}}
    assert env({"name": "V", "valueFrom": source}, resources=resources) == {"V": expected}


def test_whole_config_maps_with_a_prefix_and_optional_ones() -> None:
    sources = [
        {"prefix": "C_", "configMapRef": {"name": "c"}},
        {"secretRef": {"name": "s"}},
        {"configMapRef": {"name": "none", "optional": True}},
    ]
    assert env({"name": "P", "value": "own"}, envFrom=sources) == {"C_A": "1", "C_B": "2", "P": "own"}


def test_an_optional_key_that_is_missing_sets_nothing() -> None:
    reference = {"name": "c", "key": "NONE", "optional": True}
    assert env({"name": "V", "valueFrom": {"configMapKeyRef": reference}}) == {}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "c", "key": "NONE"}}, "couldn't find key NONE in ConfigMap c"),
        ({"secretKeyRef": {"name": "none", "key": "P"}}, 'secret "none" not found'),
        ({"fieldRef": {"fieldPath": "spec.nothing"}}, "unsupported fieldPath: spec.nothing"),
    ],
)
def test_what_is_missing_is_named(source: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        env({"name": "V", "valueFrom": source})


def test_command_lines() -> None:
    container = {"command": ["run", "$(A)"], "args": ["--x=$(A)", "$(B)"]}
    assert command_line(container, {"A": "1"}) == ["run", "1", "--x=1", "$(B)"]
    with pytest.raises(ConfigError, match="this node runs no images"):
        command_line({"args": ["x"]}, {})
