"""A fixed tree over V leaves, however they are dealt out: additions happen in one order for any world size.

Floating-point sums depend on their order. Here the order is that of a binary tree over the leaves; a member
adds up the largest subtrees that lie inside its own run of leaves, and what is left is added up everywhere
alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
Span = tuple[int, int]


def middle(low: int, high: int) -> int:
    return (low + high) // 2


def nodes(leaves: int, first: int, last: int) -> list[Span]:
    """The largest subtrees inside [first, last), from left to right."""

    def inside(low: int, high: int) -> list[Span]:
        if last <= low or high <= first or low == high:
            return []
        if first <= low and high <= last:
            return [(low, high)]
        cut = middle(low, high)
        return inside(low, cut) + inside(cut, high)

    return inside(0, leaves)


def combined(leaves: int, known: Mapping[Span, T], add: Callable[[T, T], T]) -> T:
    """The value of the root from the values of subtrees that cover it."""

    def value(low: int, high: int) -> T:
        if (low, high) in known:
            return known[low, high]
        cut = middle(low, high)
        return add(value(low, cut), value(cut, high))

    return value(0, leaves)


@dataclass(slots=True)
class Summing(Generic[T]):
    """Adds up leaves that arrive from left to right, holding one value per level of the tree."""

    leaves: int
    first: int
    last: int
    add: Callable[[T, T], T]
    done: list[tuple[Span, T]] = field(default_factory=list)
    at: int = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.first

    def leaf(self, value: T) -> None:
        span = (self.at, self.at + 1)
        self.at += 1
        self.done.append((span, value))
        while (merged := self._pair()) is not None:
            (_, left), (_, right) = self.done[-2:]
            self.done[-2:] = [(merged, self.add(left, right))]

    def _pair(self) -> Span | None:
        """The node whose two children are the last two values, if they are."""
        if len(self.done) < 2:
            return None
        (low, cut), (also, high) = self.done[-2][0], self.done[-1][0]
        return (low, high) if cut == also and self._is_node(low, high) and middle(low, high) == cut else None

    def _is_node(self, low: int, high: int) -> bool:
        a, b = 0, self.leaves
        while (a, b) != (low, high):
            cut = middle(a, b)
            if high <= cut:
                b = cut
            elif low >= cut:
                a = cut
            else:
                return False
            if a == b:
                return False
        return True
