"""Node labels as columns, so that a requirement is decided once per distinct value and not once per node.

Labels such as the host name differ on every node; whole label sets would make every node a class of its own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from muster.model.node import Node
from muster.model.rules import Requirement

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NAME = "metadata.name"


class Column:
    """One label over all nodes: `codes[n]` says which distinct value node n has, -1 for none."""

    __slots__ = ("codes", "values")

    def __init__(self, present: Sequence[str | None]) -> None:
        self.values: dict[str, int] = {}
        self.codes: Ints = np.array([self._code(value) for value in present], dtype=np.int64)

    def _code(self, value: str | None) -> int:
        return -1 if value is None else self.values.setdefault(value, len(self.values))

    def put(self, node: int, value: str | None) -> None:
        self.codes[node] = self._code(value)

    def mask(self, requirement: Requirement) -> Bools:
        """The nodes that meet the requirement."""
        if malformed(requirement):
            return np.zeros(self.codes.size, dtype=bool)
        table = np.zeros(len(self.values) + 1, dtype=bool)  # the last entry, index -1, is for nodes without
        if requirement.operator in {"In", "NotIn"}:
            table[[self.values[each] for each in requirement.values if each in self.values]] = True
            met = table[self.codes]
            return ~met if requirement.operator == "NotIn" else met
        for value, code in self.values.items():
            table[code] = holds(requirement, value)
        table[-1] = holds(requirement, None)
        return table[self.codes]


class Labels:
    """All columns that were ever asked for, kept up to date as nodes change."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.columns: dict[str, Column] = {}
        self.names = Column([node.name for node in nodes])

    def column(self, key: str) -> Column:
        column = self.columns.get(key)
        # Values that no node has any more pile up in a column; a new one is as good.
        if column is None or len(column.values) > 2 * len(self.nodes) + 64:
            column = self.columns[key] = Column([node.labels.get(key) for node in self.nodes])
        return column

    def domains(self, key: str) -> tuple[Ints, int]:
        """The domain of every node by one label, -1 for none, and how many domains there are."""
        column = self.column(key)
        return column.codes, len(column.values)

    def neighbours(self, key: str, nodes: Bools) -> Bools:
        """All nodes in the domains that any of these nodes lies in."""
        codes, number = self.domains(key)
        touched = np.zeros(number + 1, dtype=bool)
        touched[codes[nodes]] = True
        touched[-1] = False  # index -1: nodes without the label are nobody's neighbours
        return touched[codes]

    def update(self, number: int, node: Node) -> None:
        self.nodes[number] = node
        self.names.put(number, node.name)
        for key, column in self.columns.items():
            column.put(number, node.labels.get(key))


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether an object whose label has this value (None: no such label) meets a well-formed requirement."""
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, bound = integer(value), integer(requirement.values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def malformed(requirement: Requirement) -> bool:
    """Kubernetes lets a term with such a requirement match nothing."""
    match requirement.operator:
        case "In" | "NotIn":
            return not requirement.values
        case "Exists" | "DoesNotExist":
            return bool(requirement.values)
    return len(requirement.values) != 1 or integer(requirement.values[0]) is None


def integer(text: str | None) -> int | None:
    """A 64-bit decimal integer, or None."""
    if text is None or not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
