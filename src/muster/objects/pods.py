"""Pods as decoded: what they are, where they are and which rules they carry.

What a pod asks for is arithmetic of its own and lives in `requests`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from muster.objects.affinity import Affinity, TopologySpreadConstraint
from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta
from muster.objects.quantity import Raw
from muster.objects.selectors import exact_selector, node_selector_matches
from muster.objects.taints import Toleration

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the text Kubernetes writes for every address of a node


class ResourceRequirements(Decoded, frozen=True):
    """Requests and limits as written."""

    requests: dict[str, Raw] = {}
    limits: dict[str, Raw] = {}


class ContainerPort(Decoded, frozen=True):
    """A port of a container; only those taken on the node matter here."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Decoded, frozen=True):
    """A container, or an init container; the latter is a sidecar if its restart policy is Always."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container stays for the life of the pod."""
        return self.restart_policy == "Always"


class ClaimVolume(Decoded, frozen=True):
    """A volume backed by a claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Decoded, frozen=True):
    """A volume whose claim is made for this pod alone."""


class Volume(Decoded, frozen=True):
    """A volume of the pod; only those that can tie it to nodes matter here."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class Named(Decoded, frozen=True):
    """A reference by name alone."""

    name: str = ""


class SchedulingGroup(Decoded, frozen=True):
    """The native PodGroup a pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Decoded, frozen=True):
    """What was asked for."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, Raw] = {}
    resources: ResourceRequirements | None = None
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    scheduling_gates: list[Named] = []
    scheduling_group: SchedulingGroup | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []
    resource_claims: list[Named] = []
    host_network: bool = False
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class Condition(Decoded, frozen=True):
    """One condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class ContainerStatus(Decoded, frozen=True):
    """What the node agent says about one container; resources differ from the spec during a resize."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    allocated_resources: dict[str, Raw] | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Decoded, frozen=True):
    """What happened so far."""

    phase: str = "Pending"
    reason: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    allocated_resources: dict[str, Raw] | None = None
    resources: ResourceRequirements | None = None
    nominated_node_name: str = ""
    start_time: str = ""


class Pod(Decoded, frozen=True):
    """A pod. A pod template decodes as one too: it has the same metadata and spec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended: it still exists, but holds nothing."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_terminating(self) -> bool:
        """Whether it was deleted and is shutting down: it holds its node until it is gone."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def holds_node(self) -> bool:
        """Whether a node's room is taken by it."""
        return bool(self.spec.node_name) and not self.is_terminal

    @property
    def is_gated(self) -> bool:
        """Whether somebody still keeps it from being scheduled."""
        return bool(self.spec.scheduling_gates)

    @property
    def is_ready(self) -> bool:
        """Whether its Ready condition holds."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A port taken on a node."""

    address: str
    protocol: str
    port: int

    def conflicts(self, other: "HostPort") -> bool:
        """Whether both cannot be on one node: same port and protocol, and one address or any address."""
        return (
            (self.port, self.protocol) == (other.port, other.protocol)
            and (self.address == other.address or ANY_ADDRESS in {self.address, other.address})
        )  # fmt: skip


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports a pod takes on its node: those of containers that last, on the host network all they name."""
    lasting = [*(each for each in pod.spec.init_containers if each.is_sidecar), *pod.spec.containers]
    found = set()
    for port in (port for container in lasting for port in container.ports):
        number = port.host_port or (port.container_port if pod.spec.host_network else 0)
        if number > 0:
            found.add(HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", number))
    return tuple(sorted(found))


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The persistent volume claims a pod mounts; an ephemeral volume's is named after pod and volume."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return tuple(names)


def selects_node(pod: Pod, labels: Mapping[str, str], name: str) -> bool:
    """Whether node selector and required node affinity both admit a node."""
    if not exact_selector(pod.spec.node_selector).matches(labels):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return not required or node_selector_matches(required, labels, name)
