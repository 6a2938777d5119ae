"""Nodes as decoded: what they offer, their labels, and whether they take pods."""

from muster.objects.decode import Decoded, ObjectError
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Condition, Pod, selects_node
from muster.objects.quantity import QuantityError, Raw, amount, milli_units
from muster.objects.taints import OUT_OF_SERVICE, UNSCHEDULABLE, Taint, first_untolerated

_CORDON = Taint(key=UNSCHEDULABLE, effect="NoSchedule")


class NodeSpec(Decoded, frozen=True):
    """What operators and controllers say about the node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Decoded, frozen=True):
    """What the node says about itself."""

    allocatable: dict[str, Raw] = {}
    capacity: dict[str, Raw] = {}
    conditions: list[Condition] = []


class Node(Decoded, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether the node's agent is alive and well."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def is_out_of_service(self) -> bool:
        """Whether an operator declared the node dead, so that its pods are gone for certain."""
        return any(each.key == OUT_OF_SERVICE for each in self.spec.taints)

    @property
    def effective_taints(self) -> list[Taint]:
        """Its taints, counting a cordon as the taint that stands for it."""
        if not self.spec.unschedulable or _CORDON in self.spec.taints:
            return self.spec.taints
        return [*self.spec.taints, _CORDON]


def allocatable(node: Node) -> dict[str, int]:
    """What pods may use: cpu in thousandths of a core, all else in base units. Nothing stated is capacity."""
    written = node.status.allocatable or node.status.capacity
    try:
        return {name: amount(name, milli_units(raw)) for name, raw in written.items()}
    except QuantityError as error:
        raise ObjectError(f"node {node.metadata.name}: {error}") from error


def admits(node: Node, pod: Pod) -> bool:
    """Whether the node's taints and the pod's selectors let it there, room aside."""
    if first_untolerated(node.effective_taints, pod.spec.tolerations) is not None:
        return False
    return selects_node(pod, node.metadata.labels, node.metadata.name)
