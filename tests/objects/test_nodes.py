"""Nodes: what they offer and whether they let a pod in."""

from typing import Any

import pytest

from muster.objects.decode import ObjectError, from_object
from muster.objects.nodes import Node, admits, allocatable
from muster.objects.pods import Pod


def node(spec: Any = None, **status: Any) -> Node:
    """A node named n with a label."""
    return from_object(
        {"metadata": {"name": "n", "labels": {"rack": "r1"}}, "spec": spec or {}, "status": status}, Node
    )


def pod(**spec: Any) -> Pod:
    """A pod with this spec."""
    return from_object({"spec": spec}, Pod)


def test_allocatable_is_counted_as_requests_are() -> None:
    offered = {"cpu": "63930m", "memory": "520000000Ki", "pods": "110", "nvidia.com/gpu": "8"}
    assert allocatable(node(allocatable=offered, capacity={"cpu": "64"})) == {
        "cpu": 63930,
        "memory": 520000000 * 1024,
        "pods": 110,
        "nvidia.com/gpu": 8,
    }
    assert allocatable(node(capacity={"cpu": "64"})) == {"cpu": 64000}
    with pytest.raises(ObjectError, match=r"^node n: quantity 'many'"):
        allocatable(node(allocatable={"cpu": "many"}))


def test_ready_and_out_of_service() -> None:
    assert node(conditions=[{"type": "Ready", "status": "True"}]).is_ready
    assert not node(conditions=[{"type": "Ready", "status": "Unknown"}]).is_ready
    assert not node().is_ready
    dead = {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}
    assert node(dead).is_out_of_service
    assert not node().is_out_of_service


def test_a_cordon_is_a_taint_even_before_the_taint_is_there() -> None:
    cordoned = node({"unschedulable": True})
    tolerant = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert not admits(cordoned, pod())
    assert admits(cordoned, tolerant)
    both = node(
        {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        }
    )
    assert both.effective_taints == cordoned.effective_taints


def test_taints_and_selectors_must_both_let_a_pod_in() -> None:
    tainted = node({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]})
    tolerations = [{"key": "gpu", "value": "yes"}]
    assert not admits(tainted, pod())
    assert admits(tainted, pod(tolerations=tolerations))
    assert not admits(tainted, pod(tolerations=tolerations, nodeSelector={"rack": "r2"}))
    assert admits(node({"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}), pod())
