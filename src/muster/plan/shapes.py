"""Shapes: what one member asks for and where it may go, interned, with its slots per node kept up to date.

Thousands of gangs are a few dozen shapes. All per-node arithmetic is done once per shape and then only where
the ledger changed; a gang is decided by looking at numbers that are already there.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muster.model.gang import Role
from muster.model.resources import Resources
from muster.model.rules import Rules
from muster.plan.ledger import Ints, Ledger

Bools = NDArray[np.bool_]

Request = tuple[tuple[int, int], ...]
"""(row in the ledger, amount), amounts above zero only."""


class Eligibility(Protocol):
    """Which nodes rules allow and like, as `plan.rules` compiles them."""

    def allowed(self, rules: Rules) -> Bools | None: ...

    def preference(self, rules: Rules) -> Ints | None: ...


class Shape:
    """`slots[n]`: how many such members node n has room for now."""

    __slots__ = (
        "allowed",
        "cursor",
        "id",
        "impossible",
        "ledger",
        "most",
        "preference",
        "request",
        "rules",
        "slots",
        "total",
    )

    def __init__(self, number: int, ledger: Ledger, resources: Resources, rules: Rules, classes: Eligibility) -> None:
        self.id = number
        self.ledger = ledger
        self.rules = rules
        self.allowed = classes.allowed(rules)  # None: every node
        self.preference = classes.preference(rules)  # None: all nodes alike
        wanted = [(name, amount) for name, amount in resources.items() if amount > 0]
        self.impossible = any(name not in ledger.resources for name, _ in wanted)
        self.request: Request = tuple((ledger.resources[n], a) for n, a in wanted if n in ledger.resources)
        self.slots = self.slots_in(ledger.free)
        self.total = int(self.slots.sum())
        self.most = int(self.slots_in(ledger.capacity).sum())  # if nothing ran
        self.cursor = ledger.now

    def slots_in(self, free: Ints, nodes: Ints | slice | None = None) -> Ints:
        """Room for such members in any table of free amounts (the present one, or a future one)."""
        columns = slice(None) if nodes is None else nodes
        size = free[0, columns].size if free.shape[0] else len(self.ledger.nodes)
        if self.impossible:
            return np.zeros(size, dtype=np.int64)
        slots: Ints | None = None
        for row, amount in self.request:
            room = free[row, columns]
            room = room // amount if amount != 1 else room
            slots = room if slots is None else np.minimum(slots, room)
        if slots is None:  # asks for nothing: there is room for any number, bounded to keep sums exact
            slots = np.full(size, 1 << 20, dtype=np.int64)
        slots = np.maximum(slots, 0)
        if self.allowed is not None:
            slots = slots * self.allowed[columns]
        return slots

    def refresh(self) -> None:
        """Catch up with the ledger."""
        now = self.ledger.now
        if self.cursor == now:
            return
        changed = self.ledger.since(self.cursor)
        self.cursor = now
        if changed is None or sum(map(len, changed)) * 2 > self.slots.size:
            self.slots = self.slots_in(self.ledger.free)
        else:
            nodes = changed[0] if len(changed) == 1 else np.concatenate(changed)
            self.slots[nodes] = self.slots_in(self.ledger.free, nodes)
        self.total = int(self.slots.sum())

    def took(self, nodes: Ints, counts: Ints, members: int) -> None:
        """The ledger's last change was members of this very shape (negative: given back): follow it by counting.

        Exact where a member takes just one slot of any node; otherwise the next refresh does the arithmetic.
        """
        inexact = not self.request or self.impossible or self.ledger.overdrawn
        if self.cursor == self.ledger.now - 1 and self.allowed is None and not inexact:
            if nodes.size == 1:
                self.slots[nodes.item()] -= members
            else:
                self.slots[nodes] -= counts
            self.total -= members
            self.cursor += 1


class Shapes:
    """The shapes in use, by what they ask for."""

    def __init__(self, ledger: Ledger, classes: Eligibility) -> None:
        self.ledger = ledger
        self.classes = classes
        self.known: dict[tuple[object, ...], Shape] = {}
        self.all: list[Shape] = []

    def of(self, role: Role) -> Shape:
        key = (tuple(role.request.items()), role.rules)
        shape = self.known.get(key)
        if shape is None:
            key2 = (tuple(sorted(role.request.items())), role.rules)
            shape = self.known.get(key2) or self._new(role)
            self.known[key] = self.known[key2] = shape
        return shape

    def _new(self, role: Role) -> Shape:
        shape = Shape(len(self.all), self.ledger, role.request, role.rules, self.classes)
        self.all.append(shape)
        return shape

    def nodes_changed(self) -> None:
        """Labels, taints or readiness moved: ask again where each shape may go."""
        for shape in self.all:
            shape.allowed = self.classes.allowed(shape.rules)
            shape.preference = self.classes.preference(shape.rules)
            shape.most = int(shape.slots_in(self.ledger.capacity).sum())
            shape.cursor = -1
