"""Who runs where, as far as rules care: what pod affinity, spread and host ports of a role come to right now.

Tenants of equal namespace, labels and rules are one group; a group knows its members only as a list of what
was added and removed. So taking and giving seats, done a hundred thousand times in a cycle, is an append, and
the counting is left to the few roles whose rules look at pods. Groups are found by the labels selectors name.

Wishes (preferred pod affinity) count where any selected pod runs. Spread with ScheduleAnyway is not looked
at: it asks for the opposite of keeping a gang close together, and is only a wish.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from muster.model.gang import Role
from muster.model.rules import HostPort, PodSelector, PodTerm, Rules, Spread
from muster.plan.labels import Bools, Ints, holds, malformed
from muster.plan.limits import Limits
from muster.plan.narrowing import Narrowing
from muster.plan.rules import Classes

Pair = tuple[str, str]
Key = tuple[str, frozenset[Pair], tuple[PodTerm, ...], tuple[HostPort, ...]]

_ANY_ADDRESS = HostPort(0).address
_PARTS = 64
_FEW = 8
_GROUPS = 1024


@dataclass(slots=True, eq=False)
class Group:
    """Members that no rule can tell apart, and where they were added (positive) and removed (negative)."""

    key: Key
    labels: dict[str, str]
    parts: list[tuple[Ints, Ints]] = field(default_factory=list)
    compact_at: int = _PARTS

    @property
    def namespace(self) -> str:
        return self.key[0]

    def put(self, nodes: Ints, counts: Ints) -> None:
        self.parts.append((nodes, counts))
        if len(self.parts) >= self.compact_at:
            self.compact()
            self.compact_at = max(_PARTS, 2 * len(self.parts))

    def take_back(self, nodes: Ints, counts: Ints) -> None:
        for index in range(len(self.parts) - 1, max(len(self.parts) - _FEW, 0) - 1, -1):
            if self.parts[index][0] is nodes and self.parts[index][1] is counts:
                del self.parts[index]  # most groups are one gang, which gives back just what it took
                return
        self.put(nodes, -counts)

    def compact(self) -> None:
        if not self.parts:
            return
        nodes, where = np.unique(np.concatenate([part[0] for part in self.parts]), return_inverse=True)
        counts = np.zeros(nodes.size, dtype=np.int64)
        np.add.at(counts, where, np.concatenate([part[1] for part in self.parts]))
        held = counts != 0
        self.parts = [(nodes[held], counts[held])] if held.any() else []


class Tenants:
    """Every member that holds a node, by group."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.groups: dict[Key, Group] = {}
        self.by_pair: dict[Pair, dict[Group, None]] = {}
        self.repelling: dict[Pair | None, dict[Group, None]] = {}
        self.with_ports: dict[Group, None] = {}
        self.sweep_at = _GROUPS
        self.by_role: dict[int, tuple[Role, Group]] = {}  # the short way, for roles that many gangs share

    def add(self, namespace: str, role: Role, nodes: Ints, counts: Ints) -> None:
        """Members of a role now hold nodes. The arrays are kept and may not change."""
        self._group(namespace, role).put(nodes, counts)

    def remove(self, namespace: str, role: Role, nodes: Ints, counts: Ints) -> None:
        """They no longer do."""
        self._group(namespace, role).take_back(nodes, counts)

    def concerns(self, namespace: str, role: Role) -> bool:
        """Whether limits can be anything but UNLIMITED: a cheap test, which may say yes in vain."""
        if role.rules.narrows_by_pods():
            return True
        return bool(self.repelling) and any(True for _ in self._repelled_by(namespace, role))

    def limits(self, namespace: str, role: Role) -> Limits:
        """What the rules of the role, and those of running pods, come to."""
        rules = role.rules
        found = Narrowing(self.classes)
        for group, term in self._repelled_by(namespace, role):
            found.forbid_domains(term.topology_key, self._count([group]))
        for term in rules.away:
            self._keep_away(found, term, namespace, role)
        if rules.near:
            self._keep_near(found, namespace, role)
        if rules.host_ports:
            found.per_node(np.ones_like(self.classes.mark_of))
            taken = [group for group in self.with_ports if _conflict(group.key[3], rules.host_ports)]
            found.forbid(self._count(taken) > 0)
        self._spread(found, namespace, role)
        return found.limits()

    def preference(self, namespace: str, rules: Rules) -> Ints | None:
        """How well liked each node is for the pods that run near it, or None if all are alike."""
        score = np.zeros_like(self.classes.mark_of)
        for wish in rules.pods_preferred:
            held = self._count(self._selected(wish.term.selector, namespace)) > 0
            near = self.classes.labels.neighbours(wish.term.topology_key, held)
            score += (-wish.weight if wish.away else wish.weight) * near
        return score if score.any() else None

    def _keep_away(self, found: Narrowing, term: PodTerm, namespace: str, role: Role) -> None:
        found.forbid_domains(term.topology_key, self._count(self._selected(term.selector, namespace)))
        if selects(term.selector, namespace, namespace, role.labels):
            found.keep_apart(term.topology_key)

    def _keep_near(self, found: Narrowing, namespace: str, role: Role) -> None:
        """One running pod must match every term. The first of its kind may start where there is none."""
        terms = role.rules.near
        alike = [
            group
            for group in self._selected(terms[0].selector, namespace)
            if all(selects(term.selector, namespace, group.namespace, group.labels) for term in terms)
        ]
        held = self._count(alike) > 0
        near = [self.classes.labels.neighbours(term.topology_key, held) for term in terms]
        if any(mask.any() for mask in near):
            for mask in near:
                found.forbid(~mask)
        elif all(selects(term.selector, namespace, namespace, role.labels) for term in terms):
            for term in terms:
                found.keep_together(term.topology_key)
        else:
            found.forbid(np.ones_like(self.classes.mark_of, dtype=bool))

    def _spread(self, found: Narrowing, namespace: str, role: Role) -> None:
        required = [each for each in role.rules.spread if each.required]
        if not required:
            return
        labelled = np.ones_like(self.classes.mark_of, dtype=bool)
        for each in required:
            labelled &= self.classes.labels.domains(each.topology_key)[0] >= 0
        found.forbid(~labelled)
        for each in required:
            if not each.selector.labels:
                continue  # selects nobody here, though elsewhere it selects everybody: Kubernetes' rule
            alike = self._selected(each.selector, namespace)
            counted = labelled & self._counted_nodes(each, role.rules)
            itself = selects(each.selector, namespace, namespace, role.labels)
            found.balance(each, counted, np.where(counted, self._count(alike), 0), itself)

    def _counted_nodes(self, spread: Spread, rules: Rules) -> Bools:
        counted = np.ones_like(self.classes.mark_of, dtype=bool)
        if spread.honour_affinity:
            counted &= self.classes.selected(rules)
        if spread.honour_taints:
            counted &= self.classes.tolerated(rules.tolerations)
        return counted

    def _count(self, groups: Iterable[Group]) -> Ints:
        """Members of these groups on every node."""
        total = np.zeros_like(self.classes.mark_of)
        for group in groups:
            for nodes, counts in group.parts:
                np.add.at(total, nodes, counts)
        return total

    def _selected(self, selector: PodSelector, namespace: str) -> list[Group]:
        groups: Iterable[Group] = self.groups.values()
        pairs = _pinned(selector)
        if pairs is not None:
            groups = {group: None for pair in pairs for group in self.by_pair.get(pair, ())}
        return [each for each in groups if selects(selector, namespace, each.namespace, each.labels)]

    def _repelled_by(self, namespace: str, role: Role) -> Iterator[tuple[Group, PodTerm]]:
        """Running groups that want no such pod near them, by which term."""
        if not self.repelling:
            return
        for pair in (None, *role.labels.items()):
            for group in self.repelling.get(pair, ()):
                for term in group.key[2]:
                    if group.parts and selects(term.selector, group.namespace, namespace, role.labels):
                        yield group, term

    def _group(self, namespace: str, role: Role) -> Group:
        known = self.by_role.get(id(role))
        if known is not None and known[0] is role and known[1].namespace == namespace:
            return known[1]
        group = self._find(namespace, role)
        self.by_role[id(role)] = role, group
        return group

    def _find(self, namespace: str, role: Role) -> Group:
        rules = role.rules
        key = (namespace, frozenset(role.labels.items()), rules.away, rules.host_ports)
        group = self.groups.get(key)
        return group if group is not None else self._new(key, dict(role.labels))

    def _new(self, key: Key, labels: dict[str, str]) -> Group:
        if len(self.groups) >= self.sweep_at:
            self._sweep()
        group = Group(key, labels)
        self._index(group)
        return group

    def _index(self, group: Group) -> None:
        self.groups[group.key] = group
        for pair in group.labels.items():
            self.by_pair.setdefault(pair, {})[group] = None
        for term in group.key[2]:
            pairs: Iterable[Pair | None] = _pinned(term.selector) or (None,)
            for each in pairs:
                self.repelling.setdefault(each, {})[group] = None
        if group.key[3]:
            self.with_ports[group] = None

    def _sweep(self) -> None:
        """Forget the groups that nobody belongs to any more."""
        for group in self.groups.values():
            group.compact()
        alive = [group for group in self.groups.values() if group.parts]
        self.by_role.clear()
        for index in (self.groups, self.by_pair, self.repelling, self.with_ports):
            index.clear()
        for group in alive:
            self._index(group)
        self.sweep_at = max(_GROUPS, 2 * len(alive))


def selects(selector: PodSelector, own: str, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector, written in a pod of namespace `own`, selects a pod."""
    if namespace not in (selector.namespaces or (own,)):
        return False
    return all(not malformed(each) and holds(each, labels.get(each.key)) for each in selector.labels)


def _pinned(selector: PodSelector) -> list[Pair] | None:
    """Label pairs of which every selected pod has one; None if the selector names no value."""
    for each in selector.labels:
        if each.operator == "In":
            return [(each.key, value) for value in each.values]
    return None


def _conflict(left: tuple[HostPort, ...], right: tuple[HostPort, ...]) -> bool:
    return any(
        (a.port, a.protocol) == (b.port, b.protocol)
        and (a.address == b.address or _ANY_ADDRESS in {a.address, b.address})
        for a in left
        for b in right
    )
