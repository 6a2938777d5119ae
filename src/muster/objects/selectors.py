"""Selectors: which objects a rule is about, by their labels, node fields or any field.

Three spellings meet here: the label selector object of manifests, the text form of list and watch requests
(`app=web,tier in (a,b),!canary`, read in `selectortext`), and the node selector terms of node affinity, which
are ORed and may compare numbers. All compile to tuples of `Requirement`, so that one matcher decides for all.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from muster.objects.decode import Decoded

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class SelectorError(ValueError):
    """A selector that Kubernetes would refuse; the message is one line."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet the condition; an absent label meets NotIn and DoesNotExist."""
        label = labels.get(self.key)
        match self.operator:
            case "In":
                return label is not None and label in self.values
            case "NotIn":
                return label is None or label not in self.values
            case "Exists":
                return label is not None
            case "DoesNotExist":
                return label is None
        return label is not None and self._compares(label)

    def _compares(self, label: str) -> bool:
        left, right = integer(label), integer(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "Gt" else left < right

    def __str__(self) -> str:
        """The text form used in list requests."""
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold. Without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return not self.selects_nothing and all(each.matches(labels) for each in self.requirements)

    def narrowed(self, requirements: Iterable[Requirement]) -> "Selector":
        """This selector with more requirements; nothing stays nothing."""
        return Selector((*self.requirements, *requirements), self.selects_nothing)

    def __str__(self) -> str:
        """The text form, requirements sorted by key."""
        return ",".join(str(each) for each in sorted(self.requirements, key=lambda each: each.key))


EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


class SelectorRequirement(Decoded, frozen=True):
    """A requirement as written in a manifest."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Decoded, frozen=True):
    """`matchLabels` and `matchExpressions`, all of which must hold."""

    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class NodeSelectorTerm(Decoded, frozen=True):
    """Requirements on a node's labels and on its name, all of which must hold."""

    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Decoded, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


def label_selector(written: LabelSelector | None) -> Selector:
    """Compile a label selector: an absent one selects nothing, an empty one everything."""
    if written is None:
        return NOTHING
    exact = [requirement(key, "In", [value]) for key, value in written.match_labels.items()]
    listed = [requirement(each.key, each.operator, each.values) for each in written.match_expressions]
    for each in listed:
        if each.operator in {"Gt", "Lt"}:
            raise SelectorError(f"selector {each.key}: operator {each.operator} is for node affinity only")
    return Selector((*exact, *listed))


def exact_selector(labels: Mapping[str, str]) -> Selector:
    """The selector of a plain map such as `nodeSelector`; an empty map selects everything."""
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def requirement(key: str, operator: str, values: Iterable[str]) -> Requirement:
    """Check a requirement as the API server would, and build it."""
    listed = tuple(values)
    if not _is_label_key(key):
        raise SelectorError(f"selector key '{key}': is not a label name")
    for value in listed:
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            raise SelectorError(f"selector {key}: value '{value}' is not a label value")
    match operator:
        case "In" | "NotIn":
            problem = "" if listed else "needs values"
        case "Exists" | "DoesNotExist":
            problem = "takes no values" if listed else ""
        case "Gt" | "Lt":
            problem = "" if len(listed) == 1 and integer(listed[0]) is not None else "needs one integer"
        case _:
            raise SelectorError(f"selector {key}: '{operator}' is not one of In NotIn Exists DoesNotExist Gt Lt")
    if problem:
        raise SelectorError(f"selector {key}: {operator} {problem}")
    return Requirement(key, operator, listed)


def integer(text: str) -> int | None:
    """A 64-bit integer as Kubernetes reads one from a label, or None."""
    if len(text) > 20 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def node_term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Whether a node meets one term. An empty term, or one Kubernetes would refuse, meets no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    try:
        by_label = [requirement(each.key, each.operator, each.values) for each in term.match_expressions]
        by_field = [_field_requirement(each) for each in term.match_fields]
    except SelectorError:
        return False
    if not all(each.matches(labels) for each in by_label):
        return False
    # A field a node does not have reads as empty text, so that NotIn some name holds for it.
    return not name or all(each.matches({each.key: "", "metadata.name": name}) for each in by_field)


def node_selector_matches(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Whether a node meets any term; without terms none does."""
    return any(node_term_matches(term, labels, name) for term in selector.node_selector_terms)


def _field_requirement(written: SelectorRequirement) -> Requirement:
    if len(written.values) != 1:
        raise SelectorError(f"field {written.key}: needs exactly one value")
    match written.operator:
        case "In" | "NotIn":
            return Requirement(written.key, written.operator, tuple(written.values))
    raise SelectorError(f"field {written.key}: '{written.operator}' is not one of In NotIn")


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and bool(_NAME.fullmatch(name))
