"""Who holds what: nodes × resources as arrays, changed in place, with an undo log.

The ledger is never cloned. A trial takes what it needs, looks, and is undone back to its mark. Every change is
also noted in `changes`, so that whoever caches something per node (`Shape`) refreshes just the nodes that moved.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from muster.model.node import Node

Ints = NDArray[np.int64]

COMPACT_AFTER = 4096
"""Changes kept; a cache that is further behind than this starts over, which costs it no more than catching up."""


class Ledger:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.names = [node.name for node in nodes]
        self.index = {name: i for i, name in enumerate(self.names)}
        self.resources = {name: row for row, name in enumerate(sorted({r for n in nodes for r in n.capacity}))}
        self.capacity = np.zeros((len(self.resources), len(nodes)), dtype=np.int64)
        for i, node in enumerate(nodes):
            for name, amount in node.capacity.items():
                self.capacity[self.resources[name], i] = amount
        self.free = self.capacity.copy()
        self.rows = list(self.free)  # a view per resource: indexing one is twice as fast as indexing the table
        self.changes: list[Ints] = []
        self.now = 0  # how many changes there have been: the cursor of a cache that is up to date
        self.log: list[tuple[Ints, Iterable[tuple[int, int]], Ints]] = []
        self.trials = 0
        self.overdrawn = False  # someone else bound more to a node than it has

    def since(self, cursor: int) -> list[Ints] | None:
        """The nodes changed since a cursor, or None if that is too long ago to tell."""
        behind = self.now - cursor
        return None if behind > len(self.changes) else self.changes[len(self.changes) - behind :]

    def take(self, nodes: Ints, request: Iterable[tuple[int, int]], counts: Ints) -> None:
        """Members of one request, `counts[i]` of them, now hold `nodes[i]` (each node once)."""
        if nodes.size == 1:  # most are pods by themselves: plain numbers are several times faster than arrays of one
            node, count = nodes.item(), counts.item()
            for row, amount in request:
                self.rows[row][node] -= count * amount
        else:
            for row, amount in request:
                self.rows[row][nodes] -= counts if amount == 1 else counts * amount
        if self.trials:
            self.log.append((nodes, request, counts))
        self.note(nodes)

    def give(self, nodes: Ints, request: Iterable[tuple[int, int]], counts: Ints) -> None:
        self.take(nodes, request, -counts)

    def note(self, nodes: Ints) -> None:
        self.now += 1
        self.changes.append(nodes)
        if len(self.changes) > COMPACT_AFTER:
            del self.changes[: COMPACT_AFTER // 2]

    def mark(self) -> int:
        """Open a trial. Every mark is closed by exactly one `undo` or `keep`."""
        self.trials += 1
        return len(self.log)

    def undo(self, mark: int) -> None:
        while len(self.log) > mark:
            nodes, request, counts = self.log.pop()
            for row, amount in request:
                self.rows[row][nodes] += counts * amount
            self.note(nodes)
        self._close()

    def keep(self, mark: int) -> None:
        """Accept what was taken since the mark; an outer trial can still undo it."""
        if mark > len(self.log):
            raise ValueError("this mark was undone already")
        self._close()

    def _close(self) -> None:
        self.trials -= 1
        if not self.trials:
            self.log.clear()

    def resize(self, index: int, node: Node) -> None:
        """The same node with other amounts of the same resources."""
        for name, row in self.resources.items():
            more = node.capacity.get(name, 0) - int(self.capacity[row, index])
            self.capacity[row, index] += more
            self.free[row, index] += more
        self.nodes[index] = node
        self.note(np.array([index]))
        self.audit()

    def audit(self) -> None:
        """See whether more is held somewhere than there is; whoever followed that by counting looks again."""
        self.overdrawn = bool(self.free.min(initial=0) < 0)
        if self.overdrawn:
            self.note(np.flatnonzero((self.free < 0).any(axis=0)))
