"""Where a pod wants to be relative to nodes and to other pods, as written in its spec.

What is here reads the rules and says which pods and namespaces a term is about; deciding placements from them
is the brain's business.
"""

from collections.abc import Iterable, Mapping

from muster.objects.decode import Decoded
from muster.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    Selector,
    label_selector,
    node_term_matches,
)


class PreferredNodeTerm(Decoded, frozen=True):
    """A node term and what meeting it is worth (1 to 100)."""

    preference: NodeSelectorTerm = NodeSelectorTerm()
    weight: int = 0


class NodeAffinity(Decoded, frozen=True):
    """Required and preferred node terms."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] = []


class PodAffinityTerm(Decoded, frozen=True):
    """Pods to be near to, or away from, counted within the domains of one node label."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []

    def pods(self, own_labels: Mapping[str, str]) -> Selector:
        """The pods the term is about, seen from a pod with these labels."""
        same = _own_values(self.match_label_keys, own_labels, "In")
        other = _own_values(self.mismatch_label_keys, own_labels, "NotIn")
        return label_selector(self.label_selector).narrowed([*same, *other])

    def covers_namespace(self, name: str, labels: Mapping[str, str], own: str) -> bool:
        """Whether pods of a namespace count; by default only those of the pod's own."""
        if not self.namespaces and self.namespace_selector is None:
            return name == own
        return name in self.namespaces or label_selector(self.namespace_selector).matches(labels)


class WeightedPodAffinityTerm(Decoded, frozen=True):
    """A pod term and what meeting it is worth (1 to 100)."""

    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()
    weight: int = 0


class PodAffinity(Decoded, frozen=True):
    """Required and preferred pod terms; the same shape serves affinity and anti-affinity."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(Decoded, frozen=True):
    """The three kinds of affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Decoded, frozen=True):
    """How unevenly matching pods may lie over the domains of one node label."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []

    def pods(self, own_labels: Mapping[str, str]) -> Selector:
        """The pods that are counted, seen from a pod with these labels."""
        return label_selector(self.label_selector).narrowed(_own_values(self.match_label_keys, own_labels, "In"))


def node_preference(terms: Iterable[PreferredNodeTerm], labels: Mapping[str, str], name: str) -> int:
    """The sum of the weights of the preferred terms a node meets."""
    return sum(each.weight for each in terms if node_term_matches(each.preference, labels, name))


def _own_values(keys: Iterable[str], labels: Mapping[str, str], operator: str) -> list[Requirement]:
    """Keys the pod itself lacks are left out, as the API server does."""
    return [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]  # type: ignore[arg-type]
