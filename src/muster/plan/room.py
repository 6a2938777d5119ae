"""Room: free amounts one can look at and take from. The present is a view of the ledger, a future is a table.

Placement is written once against this, so "does it fit now?" and "will it fit at noon?" are one question.
"""

from typing import Protocol

from muster.plan.ledger import Ints, Ledger
from muster.plan.shapes import Shape


class Room(Protocol):
    def slots(self, shape: Shape) -> Ints:
        """Members of this shape that each node has room for. The caller may not change the array."""
        ...

    def total(self, shape: Shape) -> int: ...

    def take(self, shape: Shape, nodes: Ints, counts: Ints) -> None: ...

    def give(self, shape: Shape, nodes: Ints, counts: Ints) -> None: ...


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

    def take(self, shape: Shape, nodes: Ints, counts: Ints) -> None:
        self.ledger.take(nodes, shape.request, counts)
        shape.took(nodes, counts)

    def give(self, shape: Shape, nodes: Ints, counts: Ints) -> None:
        self.take(shape, nodes, -counts)


class Future:
    """Free amounts expected at some time, in a table of its own."""

    def __init__(self, free: Ints) -> None:
        self.free = free

    def slots(self, shape: Shape) -> Ints:
        return shape.slots_in(self.free)

    def total(self, shape: Shape) -> int:
        return int(self.slots(shape).sum())

    def take(self, shape: Shape, nodes: Ints, counts: Ints) -> None:
        for row, amount in shape.request:
            self.free[row, nodes] -= counts * amount

    def give(self, shape: Shape, nodes: Ints, counts: Ints) -> None:
        self.take(shape, nodes, -counts)
