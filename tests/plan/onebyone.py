"""Kubernetes' placement rules the slow way: one pod and one node at a time, straight from their definitions.

The compiled rules are held against this.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from muster.model.node import Node
from muster.model.rules import (
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Rules,
    Spread,
    Taint,
    Toleration,
)


@dataclass(frozen=True)
class Pod:
    """A pod, reduced to what rules look at."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)


@dataclass
class Cluster:
    """Nodes with some slots each, and the pods on them."""

    nodes: list[Node]
    slots: list[int]
    pods: list[tuple[Pod, int]] = field(default_factory=list)

    def feasible(self, pod: Pod, node: int) -> bool:
        """Whether the pod may start on the node now."""
        return (
            self.slots[node] > 0
            and node_admits(pod.rules, self.nodes[node])
            and not self._ports_conflict(pod, node)
            and self._near(pod, node)
            and not self._repelled(pod, node)
            and all(self._balanced(pod, node, each) for each in pod.rules.spread if each.required)
        )

    def start(self, pod: Pod, node: int) -> None:
        """The pod now runs on the node."""
        self.slots[node] -= 1
        self.pods.append((pod, node))

    def stop_last(self) -> None:
        """Undo the last start."""
        _, node = self.pods.pop()
        self.slots[node] += 1

    def _ports_conflict(self, pod: Pod, node: int) -> bool:
        taken = [port for other, where in self.pods if where == node for port in other.rules.host_ports]
        return any(ports_conflict(mine, theirs) for mine in pod.rules.host_ports for theirs in taken)

    def _domain(self, node: int, key: str) -> str | None:
        return self.nodes[node].labels.get(key)

    def _same_domain(self, left: int, right: int, key: str) -> bool:
        return self._domain(left, key) is not None and self._domain(left, key) == self._domain(right, key)

    def _near(self, pod: Pod, node: int) -> bool:
        terms = pod.rules.near
        if not terms:
            return True
        alike = [where for other, where in self.pods if all(about(t, pod, other) for t in terms)]
        anywhere = any(self._domain(where, t.topology_key) is not None for where in alike for t in terms)
        if not anywhere and all(about(t, pod, pod) for t in terms):
            return all(self._domain(node, t.topology_key) is not None for t in terms)
        return all(any(self._same_domain(node, where, t.topology_key) for where in alike) for t in terms)

    def _repelled(self, pod: Pod, node: int) -> bool:
        return any(
            (about(term, one, other) and self._same_domain(node, where, term.topology_key))
            for running, where in self.pods
            for one, other in ((pod, running), (running, pod))
            for term in one.rules.away
        )

    def _balanced(self, pod: Pod, node: int, spread: Spread) -> bool:
        domain = self._domain(node, spread.topology_key)
        if domain is None:
            return False
        keys = [each.topology_key for each in pod.rules.spread if each.required]
        counts: dict[str, int] = {}
        for number, each in enumerate(self.nodes):
            if any(key not in each.labels for key in keys) or not counted(pod.rules, spread, each):
                continue
            here = sum(
                bool(spread.selector.labels) and selected(spread.selector, pod, other)
                for other, where in self.pods
                if where == number
            )
            name = each.labels[spread.topology_key]
            counts[name] = counts.get(name, 0) + here
        emptiest = min(counts.values(), default=0) if len(counts) >= spread.min_domains else 0
        itself = selected(spread.selector, pod, pod)
        return counts.get(domain, 0) + itself - emptiest <= spread.max_skew


def counted(rules: Rules, spread: Spread, node: Node) -> bool:
    """Whether a spread constraint looks at a node."""
    if spread.honour_affinity and not node_selected(rules, node):
        return False
    return not spread.honour_taints or node_tolerated(rules, node)


def selected(selector: PodSelector, own: Pod, other: Pod) -> bool:
    """Whether a selector in pod `own` selects pod `other`."""
    namespaces = selector.namespaces or (own.namespace,)
    return other.namespace in namespaces and all(met(r, other.labels) for r in selector.labels)


def about(term: PodTerm, own: Pod, other: Pod) -> bool:
    """Whether a term in pod `own` is about pod `other`."""
    return selected(term.selector, own, other)


def ports_conflict(left: HostPort, right: HostPort) -> bool:
    """Whether two ports cannot be taken on one node."""
    if (left.port, left.protocol) != (right.port, right.protocol):
        return False
    return "0.0.0.0" in (left.address, right.address) or left.address == right.address


def met(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a requirement."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return bool(values) and (key not in labels or labels[key] not in values)
        case "Exists":
            return key in labels and not values
        case "DoesNotExist":
            return key not in labels and not values
        case "Gt":
            return _number(labels.get(key)) > _number(values[0]) if _numbers(labels, key, values) else False
        case "Lt":
            return _number(labels.get(key)) < _number(values[0]) if _numbers(labels, key, values) else False


def _numbers(labels: Mapping[str, str], key: str, values: tuple[str, ...]) -> bool:
    texts = [labels.get(key, ""), *values]
    return len(values) == 1 and all(text.lstrip("-").isdigit() for text in texts)


def _number(text: str | None) -> int:
    return int(text or "0")


def term_met(term: NodeTerm, node: Node) -> bool:
    """Whether a node meets a term."""
    if not term.labels and not term.fields:
        return False
    fields = {"metadata.name": node.name}
    return all(met(r, node.labels) for r in term.labels) and all(
        len(r.values) == 1 and r.operator in ("In", "NotIn") and met(r, {r.key: fields.get(r.key, "")})
        for r in term.fields
    )


def node_selected(rules: Rules, node: Node) -> bool:
    """Node selector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in rules.node_selector):
        return False
    return not rules.nodes_any or any(term_met(term, node) for term in rules.nodes_any)


def covered(taint: Taint, toleration: Toleration) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator == "Equal":
        return toleration.value == taint.value
    if not all(text.isdigit() and str(int(text)) == text for text in (toleration.value, taint.value)):
        return False
    less = int(taint.value) < int(toleration.value)
    return less if toleration.operator == "Lt" else int(taint.value) > int(toleration.value)


def node_tolerated(rules: Rules, node: Node) -> bool:
    """Readiness, cordon and taints."""
    taints = [taint for taint in node.taints if taint.effect != "PreferNoSchedule"]
    if not node.schedulable:
        taints.append(Taint("node.kubernetes.io/unschedulable"))
    return node.ready and all(any(covered(taint, each) for each in rules.tolerations) for taint in taints)


def node_admits(rules: Rules, node: Node) -> bool:
    """Everything that depends on the node alone."""
    volumes = all(any(term_met(term, node) for term in terms) for terms in rules.volumes)
    return volumes and node_selected(rules, node) and node_tolerated(rules, node)


def can_start_in_turn(cluster: Cluster, pod: Pod, seats: Iterable[int]) -> bool:
    """Whether copies of the pod can start on these nodes in some order. Changes the cluster.

    Starting one never hurts another that is to start anyway, so whichever can goes first.
    """
    waiting = list(seats)
    while waiting:
        node = next((each for each in waiting if cluster.feasible(pod, each)), None)
        if node is None:
            return False
        cluster.start(pod, node)
        waiting.remove(node)
    return True


def every_way(cluster: Cluster, pod: Pod, need: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of nodes on which `need` copies can start one after the other."""
    if need == 0:
        yield ()
        return
    for node in range(len(cluster.nodes)):
        if cluster.feasible(pod, node):
            cluster.start(pod, node)
            for rest in every_way(cluster, pod, need - 1):
                yield (node, *rest)
            cluster.stop_last()
