"""Where members of a role may run, as plain data.

Dialects translate a pod's scheduling fields into these; `plan.rules` compiles them into node masks and caps.
Everything is hashable, so that equal rules are compiled once however many gangs carry them.
"""

from dataclasses import dataclass
from typing import Literal

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key with `Exists` tolerates everything; an empty effect matches every effect."""

    key: str = ""
    operator: Literal["Equal", "Exists", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: Effect | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """All requirements must hold. A term without any matches no node, as in Kubernetes."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()  # only metadata.name exists


@dataclass(frozen=True, slots=True)
class PreferredNodes:
    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods an affinity or spread rule counts: labels within namespaces (empty: the pod's own)."""

    labels: tuple[Requirement, ...] = ()
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Near (affinity) or away from (anti-affinity) the selected pods, judged by the node label `topology_key`."""

    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class PreferredPods:
    weight: int
    term: PodTerm
    away: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """Topology spread: no domain of `topology_key` may hold over `max_skew` more selected pods than the emptiest."""

    topology_key: str
    max_skew: int
    selector: PodSelector
    required: bool = True
    min_domains: int = 1
    honour_affinity: bool = True
    honour_taints: bool = False


@dataclass(frozen=True, slots=True)
class HostPort:
    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that narrows the choice of nodes. `nodes_any` empty means no required node affinity."""

    node_selector: tuple[tuple[str, str], ...] = ()
    nodes_any: tuple[NodeTerm, ...] = ()
    nodes_preferred: tuple[PreferredNodes, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    near: tuple[PodTerm, ...] = ()
    away: tuple[PodTerm, ...] = ()
    pods_preferred: tuple[PreferredPods, ...] = ()
    spread: tuple[Spread, ...] = ()
    volumes: tuple[tuple[NodeTerm, ...], ...] = ()  # each volume: any of its terms; all volumes must agree

    def narrows_by_pods(self) -> bool:
        """Whether the rule depends on which pods run where, not on nodes alone."""
        return bool(self.host_ports or self.near or self.away or self.spread)


ANYWHERE = Rules()
