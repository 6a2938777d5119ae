"""Nodes as the API has them, for the brain: allocatable amounts, labels, taints, and whether they take pods."""

from muster.model import node as model
from muster.model import rules
from muster.objects.nodes import Node, allocatable
from muster.objects.taints import Taint

EFFECTS: dict[str, rules.Effect] = {
    "NoSchedule": "NoSchedule",
    "PreferNoSchedule": "PreferNoSchedule",
    "NoExecute": "NoExecute",
}
LIFECYCLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Said by the Ready condition already, and sooner."""


def read_node(node: Node) -> model.Node:
    taints = tuple(_taint(taint) for taint in node.spec.taints if taint.effect in EFFECTS and _says_more(taint))
    return model.Node(
        node.metadata.name,
        allocatable(node),
        dict(node.metadata.labels),
        taints,
        schedulable=not node.spec.unschedulable,
        ready=node.is_ready and not node.is_out_of_service,
    )


def _says_more(taint: Taint) -> bool:
    return taint.key not in LIFECYCLE


def _taint(taint: Taint) -> rules.Taint:
    return rules.Taint(taint.key, taint.value, EFFECTS[taint.effect])
