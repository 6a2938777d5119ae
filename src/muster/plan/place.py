"""Placing a gang whole: every role's quorum at once, in one domain if the gang requires one, or nothing.

One role is decided in one step, and a place is found whenever one exists. Across roles the scarcer goes first;
if a later role then finds no room, other orders are tried, and domains one after the other, up to a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Protocol

import numpy as np

from muster.model.gang import Role
from muster.plan import pick
from muster.plan.forest import Forest
from muster.plan.ledger import Ints
from muster.plan.limits import UNLIMITED, Limits
from muster.plan.room import Part, Room
from muster.plan.shapes import Bools, Shape
from muster.plan.spread import allocate

ORDERS_TRIED = 24
DOMAINS_TRIED = 64


@dataclass(slots=True)
class Want:
    """What is to be placed of one role."""

    role: int
    shape: Shape
    need: int
    spec: Role


class Company(Protocol):
    """What rules that look at other pods come to, members seated a moment ago included."""

    def limits(self, want: Want) -> Limits: ...

    def preference(self, want: Want) -> Ints | None: ...

    def joined(self, want: Want, part: Part) -> None: ...

    def left(self, want: Want, part: Part) -> None: ...


@dataclass(slots=True)
class Scope:
    """Where to look: a domain (depth -1: everywhere), perhaps without some nodes."""

    depth: int = -1
    domain: int = 0
    without: Bools | None = None


def place(room: Room, forest: Forest, wants: Sequence[Want], company: Company, scope: Scope) -> list[Part] | None:
    """All wants within the scope, or None. The room is left as it was found."""
    if len(wants) == 1:
        part = _one(room, forest, wants[0], company, scope)
        return None if part is None else [part]
    for order in islice(_orders(room, wants), ORDERS_TRIED):
        parts = _in_turn(room, forest, order, company, scope)
        if parts is not None:
            return sorted(parts, key=lambda part: part.role)
    return None


def place_in_one_domain(
    room: Room,
    forest: Forest,
    wants: Sequence[Want],
    depth: int,
    company: Company,
    open_domains: Bools | None,
    without: Bools | None,
) -> tuple[list[Part], int] | None:
    """All wants inside one domain of a level: the tightest that holds them. Returns the parts and the domain."""
    domains = _domains(room, forest, wants, depth, company, open_domains, without)
    for domain in domains if len(wants) == 1 else islice(domains, DOMAINS_TRIED):
        parts = place(room, forest, wants, company, Scope(depth, domain, without))
        if parts is not None:
            return parts, domain
    return None


def _domains(
    room: Room,
    forest: Forest,
    wants: Sequence[Want],
    depth: int,
    company: Company,
    open_domains: Bools | None,
    without: Bools | None,
) -> Iterator[int]:
    """Domains with enough slots for each role by itself, tightest for the most demanding role first."""
    starts = forest.levels[depth].starts
    fits = np.ones(len(starts), dtype=bool) if open_domains is None else open_domains.copy()
    spare: Ints | None = None
    for want in wants:
        # Of several roles, one may open nodes to the next: what company rules out is known only once it is seated.
        limits = company.limits(want) if len(wants) == 1 else UNLIMITED
        sums = np.add.reduceat(_in_blocks(_usable(room, want, limits, without), want), starts)
        fits &= sums >= want.need
        spare = sums - want.need if spare is None else np.minimum(spare, sums - want.need)
    if spare is not None:
        candidates = np.flatnonzero(fits)
        yield from candidates[np.argsort(spare[candidates], kind="stable")].tolist()


def _orders(room: Room, wants: Sequence[Want]) -> Iterator[tuple[Want, ...]]:
    """The scarcest role first, then every other order."""
    scarce = sorted(wants, key=lambda want: (room.total(want.shape) / want.need, want.role))
    return permutations(scarce)


def _in_turn(room: Room, forest: Forest, wants: Sequence[Want], company: Company, scope: Scope) -> list[Part] | None:
    seated: list[tuple[Want, Part]] = []
    for want in wants:
        part = _one(room, forest, want, company, scope)
        if part is None:
            break
        room.take(part)
        company.joined(want, part)
        seated.append((want, part))
    for want, part in reversed(seated):
        room.give(part)
        company.left(want, part)
    return [part for _, part in seated] if len(seated) == len(wants) else None


def _one(room: Room, forest: Forest, want: Want, company: Company, scope: Scope) -> Part | None:
    limits = company.limits(want)
    slots = _usable(room, want, limits, scope.without)
    if not limits.simple:
        found = allocate(_within(slots, forest, scope), want.need, limits)
        return None if found is None else Part(want.role, want.shape, *found, want.need)
    preference = company.preference(want)
    if preference is not None:
        slots = _preferred(slots, want.need, preference, forest, scope)
    found = _seat(forest, slots, want, scope)
    return None if found is None else Part(want.role, want.shape, *found, want.need)


def _usable(room: Room, want: Want, limits: Limits, without: Bools | None) -> Ints:
    slots = room.slots(want.shape)
    if without is not None:
        slots = np.where(without, 0, slots)
    if limits.per_node is not None:
        slots = np.minimum(slots, limits.per_node)
    if limits.allowed is not None:
        slots = slots * limits.allowed
    return slots


def _in_blocks(slots: Ints, want: Want) -> Ints:
    """What is left of the slots where tensor-parallel peers must share a node."""
    layout = want.spec.parallelism
    return slots if layout is None or layout.tp == 1 else slots - slots % layout.tp


def _within(slots: Ints, forest: Forest, scope: Scope) -> Ints:
    begin, end = forest.span(scope.depth, scope.domain)
    inside = np.zeros_like(slots)
    inside[begin:end] = slots[begin:end]
    return inside


def _preferred(slots: Ints, need: int, preference: Ints, forest: Forest, scope: Scope) -> Ints:
    """The slots of the best-liked nodes that together suffice."""
    begin, end = forest.span(scope.depth, scope.domain)
    for score in np.unique(preference)[::-1].tolist():
        liked = np.where(preference >= score, slots, 0)
        if liked[begin:end].sum() >= need:
            return liked
    return slots


def _seat(forest: Forest, slots: Ints, want: Want, scope: Scope) -> tuple[Ints, Ints] | None:
    begin, end = forest.span(scope.depth, scope.domain)
    layout = want.spec.parallelism
    if layout is None or (layout.tp == 1 and layout.pp == 1):
        if int(slots[begin:end].sum()) < want.need:
            return None
        return pick.close_together(forest, slots, want.need, scope.depth, scope.domain)
    return _seat_parallel(forest, slots, want.need, layout.tp, layout.pp, scope)


def _seat_parallel(forest: Forest, slots: Ints, need: int, tp: int, pp: int, scope: Scope) -> tuple[Ints, Ints] | None:
    """Tensor-parallel peers are one indivisible block on a node; the stages of a pipeline share a domain."""
    begin, end = forest.span(scope.depth, scope.domain)
    blocks = slots // tp
    if need % tp or int(blocks[begin:end].sum()) * tp < need:
        return None
    if need % (tp * pp) or pp == 1:  # stages that are missing from a pipeline need just be close
        nodes, counts = pick.close_together(forest, blocks, need // tp, scope.depth, scope.domain)
        return nodes, counts * tp
    pipelines = need // (tp * pp)
    for depth in range(len(forest.levels) - 1, scope.depth, -1):
        found = _pipelines(forest, blocks, pipelines, pp, depth, scope)
        if found is not None:
            return found[0], found[1] * tp
    nodes, counts = pick.close_together(forest, blocks, pipelines * pp, scope.depth, scope.domain)
    return nodes, counts * tp


def _pipelines(
    forest: Forest, blocks: Ints, pipelines: int, pp: int, depth: int, scope: Scope
) -> tuple[Ints, Ints] | None:
    """Whole pipelines, each inside one domain of this level, over as few and as close domains as possible."""
    first, last = forest.inside(scope.depth, scope.domain, depth)
    begin, end = forest.span(scope.depth, scope.domain)
    starts = forest.levels[depth].starts[first:last] - begin
    whole = np.add.reduceat(blocks[begin:end], starts) // pp
    if int(whole.sum()) < pipelines:
        return None
    domains, amounts = pick.fullest_first(whole, pipelines)
    seats = [
        pick.close_together(forest, blocks, amount * pp, depth, first + domain)
        for domain, amount in sorted(zip(domains.tolist(), amounts.tolist(), strict=True))
    ]
    return np.concatenate([nodes for nodes, _ in seats]), np.concatenate([counts for _, counts in seats])
