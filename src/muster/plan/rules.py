"""Placement rules that depend on nodes alone, compiled into one mask and one score over all nodes.

Thousands of gangs carry a handful of rules, and thousands of nodes a handful of label values and taints: each
rule is decided once per distinct value, spread out over the nodes by indexing, and remembered.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from muster.model.node import Node
from muster.model.rules import NodeTerm, Requirement, Rules, Taint, Toleration
from muster.plan.labels import NAME, Bools, Column, Ints, Labels, integer

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
WISH_WEIGHT = 100
"""What going against a PreferNoSchedule taint costs: as much as the strongest preference is worth."""

_REMEMBERED = 1024

V = TypeVar("V")
Array = TypeVar("Array", Ints, Bools)

Marks = tuple[tuple[Taint, ...], bool, bool]
"""All that is not a label: taints, not cordoned, ready."""


class Classes:
    """The nodes in ledger order, and which of them rules allow."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.labels = Labels(nodes)
        self.marks: dict[Marks, int] = {}
        self.mark_of: Ints = np.array([self._mark(node) for node in nodes], dtype=np.int64)
        self._masks: dict[tuple[object, ...], Bools | None] = {}
        self._scores: dict[tuple[object, ...], Ints | None] = {}

    def allowed(self, rules: Rules) -> Bools | None:
        """The nodes where members may run as far as nodes alone decide; None for all. Not to be changed."""
        key = (rules.node_selector, rules.nodes_any, rules.tolerations, rules.volumes)
        if key not in self._masks:
            mask = self.selected(rules) & self.tolerated(rules.tolerations)
            for terms in rules.volumes:
                mask &= self._any(terms)
            _remember(self._masks, key, None if mask.all() else _frozen(mask))
        return self._masks[key]

    def preference(self, rules: Rules) -> Ints | None:
        """How well liked each node is, or None if all are alike. Not to be changed."""
        key = (rules.nodes_preferred, rules.tolerations)
        if key not in self._scores:
            score = -WISH_WEIGHT * self._by_mark(lambda mark: _wishes_against(mark[0], rules.tolerations))
            for each in rules.nodes_preferred:
                score += each.weight * self._term(each.term)
            flat = not score.size or bool((score == score[0]).all())
            _remember(self._scores, key, None if flat else _frozen(score))
        return self._scores[key]

    def selected(self, rules: Rules) -> Bools:
        """The nodes that node selector and required node affinity admit."""
        mask = np.ones(self.mark_of.size, dtype=bool)
        for key, value in rules.node_selector:
            mask &= self.labels.column(key).mask(Requirement(key, "In", (value,)))
        return mask & self._any(rules.nodes_any) if rules.nodes_any else mask

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> Bools:
        """The nodes that are ready and whose taints, a cordon among them, are all tolerated."""
        return self._by_mark(lambda mark: _admits(mark, tolerations)).astype(bool)

    def update(self, number: int, node: Node) -> None:
        """Node `number` has new labels or taints, or became ready or not."""
        self.labels.update(number, node)
        self.mark_of[number] = self._mark(node)
        self._masks.clear()
        self._scores.clear()

    def _mark(self, node: Node) -> int:
        return self.marks.setdefault((node.taints, node.schedulable, node.ready), len(self.marks))

    def _by_mark(self, decide: Callable[[Marks], int]) -> Ints:
        return np.array([decide(mark) for mark in self.marks], dtype=np.int64)[self.mark_of]

    def _any(self, terms: tuple[NodeTerm, ...]) -> Bools:
        mask = np.zeros(self.mark_of.size, dtype=bool)
        for term in terms:
            mask |= self._term(term)
        return mask

    def _term(self, term: NodeTerm) -> Bools:
        """An empty term admits no node, as in Kubernetes."""
        mask = np.full(self.mark_of.size, bool(term.labels or term.fields))
        for each in term.labels:
            mask &= self.labels.column(each.key).mask(each)
        for each in term.fields:
            mask &= self._field(each)
        return mask

    def _field(self, requirement: Requirement) -> Bools:
        """Fields are compared with exactly one value; one that nodes do not have reads as empty."""
        if requirement.operator not in {"In", "NotIn"} or len(requirement.values) != 1:
            return np.zeros(self.mark_of.size, dtype=bool)
        if requirement.key == NAME:
            return self.labels.names.mask(requirement)
        return Column([""] * self.mark_of.size).mask(requirement)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
    bound, value = _plain_integer(toleration.value), _plain_integer(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.operator == "Lt" else value > bound


def _admits(mark: Marks, tolerations: tuple[Toleration, ...]) -> bool:
    taints, schedulable, ready = mark
    if not schedulable:
        taints = (*taints, CORDON)
    return ready and all(
        taint.effect == "PreferNoSchedule" or any(tolerates(each, taint) for each in tolerations) for taint in taints
    )


def _wishes_against(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations)
        for taint in taints
    )


def _plain_integer(text: str) -> int | None:
    """Comparing taints is stricter than comparing labels: no leading zeros, no minus zero."""
    number = integer(text)
    return number if number is not None and str(number) == text else None


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _remember(cache: dict[tuple[object, ...], V], key: tuple[object, ...], value: V) -> None:
    if len(cache) >= _REMEMBERED:
        cache.clear()
    cache[key] = value
