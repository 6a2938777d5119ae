"""Room: free amounts one can look at and take from. The present is a view of the ledger, a future is a table.

Placement is written once against this, so "does it fit now?" and "will it fit at noon?" are one question.
"""

from dataclasses import dataclass
from typing import Protocol

from muster.plan.ledger import Ints, Ledger
from muster.plan.shapes import Shape


@dataclass(slots=True)
class Part:
    """Members of one role on nodes, in rank order: `counts[i]` of them on `nodes[i]`, `members` in all."""

    role: int
    shape: Shape
    nodes: Ints
    counts: Ints
    members: int


class Room(Protocol):
    def slots(self, shape: Shape) -> Ints:
        """Members of this shape that each node has room for. The caller may not change the array."""
        ...

    def total(self, shape: Shape) -> int: ...

    def take(self, part: Part) -> None: ...

    def give(self, part: Part) -> None: ...


class Present:
    """The ledger as it stands. Takes are real: put them between `mark` and `undo` to try something out."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def slots(self, shape: Shape) -> Ints:
        if shape.cursor != self.ledger.now:
            shape.refresh()
        return shape.slots

    def total(self, shape: Shape) -> int:
        if shape.cursor != self.ledger.now:
            shape.refresh()
        return shape.total

    def take(self, part: Part) -> None:
        self.ledger.take(part.nodes, part.shape.request, part.counts)
        part.shape.took(part.nodes, part.counts, part.members)

    def give(self, part: Part) -> None:
        counts = -part.counts
        self.ledger.take(part.nodes, part.shape.request, counts)
        part.shape.took(part.nodes, counts, -part.members)


class Future:
    """Free amounts expected at some time, in a table of its own."""

    def __init__(self, free: Ints) -> None:
        self.free = free

    def slots(self, shape: Shape) -> Ints:
        return shape.slots_in(self.free)

    def total(self, shape: Shape) -> int:
        return int(self.slots(shape).sum())

    def take(self, part: Part) -> None:
        for row, amount in part.shape.request:
            self.free[row, part.nodes] -= part.counts * amount

    def give(self, part: Part) -> None:
        for row, amount in part.shape.request:
            self.free[row, part.nodes] += part.counts * amount
