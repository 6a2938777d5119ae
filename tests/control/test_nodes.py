"""Nodes as the brain sees them."""

from typing import Any

import pytest

from muster.control.nodes import read_node
from muster.model.rules import Taint
from muster.objects.decode import from_object
from muster.objects.nodes import Node


def node(spec: dict[str, Any] | None = None, ready: str = "True") -> Node:
    tree = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": spec or {},
        "status": {
            "allocatable": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "8", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return from_object(tree, Node)


def test_amounts_and_labels() -> None:
    found = read_node(node())
    assert (found.name, found.labels) == ("n1", {"zone": "a"})
    assert found.capacity == {"cpu": 2000, "memory": 1 << 30, "nvidia.com/gpu": 8, "pods": 110}
    assert (found.ready, found.schedulable, found.taints) == (True, True, ())


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_is_said_once(ready: str) -> None:
    taints = [{"key": f"node.kubernetes.io/{key}", "effect": "NoExecute"} for key in ("not-ready", "unreachable")]
    found = read_node(node({"taints": taints}, ready))
    assert (found.ready, found.taints) == (False, ())


def test_cordoned() -> None:
    found = read_node(node({"unschedulable": True}))
    assert (found.ready, found.schedulable) == (True, False)


def test_taints_keep_key_value_and_effect_and_unknown_effects_are_left_out() -> None:
    taints = [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
        {"key": "odd", "effect": "Whatever"},
    ]
    assert read_node(node({"taints": taints})).taints == (
        Taint("team", "a", "NoSchedule"),
        Taint("slow", "", "PreferNoSchedule"),
    )
