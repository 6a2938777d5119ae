"""From a gang to what is asked of the cluster: shapes and numbers, its kind, and a place for it in any room."""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness
from muster.plan.company import Company
from muster.plan.explain import why_never
from muster.plan.pick import close_together
from muster.plan.place import Scope, Want, place, place_in_one_domain
from muster.plan.room import Future, Part, Room
from muster.plan.shapes import Bools, Shape
from muster.plan.tenants import Tenants
from muster.plan.waiting import Ask, Blueprint, Entry, Kind, plain_shape

if TYPE_CHECKING:
    from muster.plan.state import State

BLUEPRINTS = 4096


class Asker:
    """Reads gangs against one set of nodes."""

    def __init__(self, state: "State") -> None:
        self.state = state
        self.nobody = Tenants(state.classes)
        self.blueprints: dict[tuple[int, Closeness], Blueprint] = {}
        self.in_use: dict[Shape | None, int] = {}  # gangs by their plain shape; None: anything special

    # Entries and kinds

    def blueprint(self, gang: Gang) -> Blueprint:
        """Gangs that share their roles, as those of one trace or one owner do, are read once."""
        key = (id(gang.roles), gang.closeness)
        known = self.blueprints.get(key)
        if known is None:
            if len(self.blueprints) >= BLUEPRINTS:
                self.blueprints.clear()
            known = self.blueprints[key] = self._read(gang)
        return known

    def _read(self, gang: Gang) -> Blueprint:
        forest, closeness, roles = self.state.forest, gang.closeness, gang.roles
        required, preferred = forest.depth(closeness.required), forest.depth(closeness.preferred)
        shapes = tuple(self.state.shapes.of(role) for role in roles)
        needs = tuple(role.min for role in roles)
        bends = any(role.most > role.min for role in roles)
        unknown = closeness.required if closeness.required and required < 0 else ""
        plain = None if unknown else plain_shape(roles, shapes, required)
        key: object = (plain.id, needs[0]) if plain is not None else self._special_key(gang, shapes, needs)
        return Blueprint(roles, shapes, needs, sum(needs), bends, required, preferred, unknown, plain, key)

    def _special_key(self, gang: Gang, shapes: Sequence[Shape], needs: Sequence[int]) -> object:
        by_pods = any(role.rules.narrows_by_pods() or role.rules.pods_preferred for role in gang.roles)
        labels = tuple(tuple(sorted(role.labels.items())) for role in gang.roles) if by_pods else ()
        layouts = tuple(role.parallelism for role in gang.roles)
        namespace = gang.namespace if by_pods else ""
        return tuple(shape.id for shape in shapes), tuple(needs), gang.closeness, layouts, namespace, labels

    def entry(self, gangs: tuple[Gang, ...], number: int) -> Entry:
        asks = tuple([Ask(gang, self.blueprint(gang)) for gang in gangs])
        first = gangs[0]
        if len(gangs) == 1:
            entry = Entry(first.uid, asks, asks[0].blueprint.key, number)
        else:
            entry = Entry(first.group, asks, tuple([ask.blueprint.key for ask in asks]), number)
        for gang in gangs:
            length = gang.length
            entry.length = max(entry.length, inf if length is None else length)
            if gang.promised is not None:
                entry.promised = max(entry.promised or 0.0, gang.promised.at)
                entry.since = gang.promised.since
        entry.written = entry.promised
        return entry

    def join(self, entry: Entry) -> None:
        queue = self.state.queue
        known = len(queue.kinds)
        kind = queue.join(entry, 0.0)
        if len(queue.kinds) > known:
            kind.hopeless = self._verdict(kind)
        if not kind.hopeless:
            self.count(entry, 1)

    def count(self, entry: Entry, sign: int) -> None:
        for ask in entry.asks:
            self.count_one(ask.blueprint.plain if len(entry.asks) == 1 else None, sign)

    def count_one(self, what: Shape | None, sign: int) -> None:
        """Keep score of what shapes everything is about: see `only_shape`."""
        users = self.in_use.get(what, 0) + sign
        if users:
            self.in_use[what] = users
        else:
            del self.in_use[what]

    def only_shape(self) -> Shape | None:
        """The shape that everything waiting or running asks for, if there is only one."""
        if len(self.in_use) != 1:
            return None
        (only,) = self.in_use
        return only

    def judge(self, kind: Kind) -> None:
        """The nodes changed: a kind may have lost all hope, and every promise with it, or found it."""
        before, kind.hopeless = kind.hopeless, self._verdict(kind)
        if bool(before) == bool(kind.hopeless):
            return
        for entry in kind.entries:
            self.count(entry, -1 if kind.hopeless else 1)
            if kind.hopeless:
                self.state.revoke(entry)

    def _verdict(self, kind: Kind) -> str:
        """Would it fit if nothing else ran? If not, nobody of this kind is planned until the nodes change."""
        entry = kind.entries[0]
        if any(ask.blueprint.unknown_level for ask in entry.asks):
            fits = False
        elif kind.single is not None:
            fits = kind.single[0].most >= kind.single[1]
        else:
            empty = Future(self.state.ledger.capacity.copy())
            fits = self._place(empty, entry, None, when_empty=True) is not None
        return "" if fits else why_never(self.state, entry)

    # Placement

    def place(self, room: Room, entry: Entry, without: Bools | None) -> list[list[Part]] | None:
        """Every gang of the entry at its quorum, in a room that is left as it was."""
        single = entry.kind.single
        if single is not None:
            shape, need = single
            gang = entry.asks[0].gang
            if shape.preference is None and not self.state.tenants.concerns(gang.namespace, gang.roles[0]):
                return self._place_single(room, shape, need, without)
        return self._place(room, entry, without, when_empty=False)

    def _place_single(self, room: Room, shape: Shape, need: int, without: Bools | None) -> list[list[Part]] | None:
        """The short way for one plain role: nearly every gang of nearly every cluster."""
        slots = room.slots(shape)
        total = room.total(shape)
        if without is not None:
            slots = np.where(without, 0, slots)
            total = int(slots.sum())
        if total < need:
            return None
        return [[Part(0, shape, *close_together(self.state.forest, slots, need), need)]]

    def _place(self, room: Room, entry: Entry, without: Bools | None, *, when_empty: bool) -> list[list[Part]] | None:
        """One gang after the other, each beside those before it."""
        tenants = self.nobody if when_empty else self.state.tenants
        seating: list[list[Part]] = []
        for ask in entry.asks:
            parts = self.seat(room, ask, ask.blueprint.needs, without, when_empty=when_empty)
            if parts is None:
                break
            seating.append(parts)
            self.state.domains.try_out(ask, int(parts[0].nodes[0]), 1, when_empty)
            for part in parts:
                room.take(part)
                tenants.add(ask.gang.namespace, ask.gang.roles[part.role], part.nodes, part.counts)
        for ask, parts in zip(entry.asks, seating, strict=False):
            self.state.domains.try_out(ask, int(parts[0].nodes[0]), -1, when_empty)
            for part in parts:
                room.give(part)
                tenants.remove(ask.gang.namespace, ask.gang.roles[part.role], part.nodes, part.counts)
        return seating if len(seating) == len(entry.asks) else None

    def seat(
        self,
        room: Room,
        ask: Ask,
        needs: Sequence[int],
        without: Bools | None = None,
        *,
        when_empty: bool = False,
    ) -> list[Part] | None:
        """So many members of each role of one gang, as close as it requires and then as it prefers."""
        forest, plan, gang = self.state.forest, ask.blueprint, ask.gang
        wants = wants_of(gang.roles, plan.shapes, needs)
        company = Company(self.nobody if when_empty else self.state.tenants, gang.namespace)
        if plan.required >= 0:
            open_domains = self.state.domains.open(gang, plan.required, when_empty)
            found = place_in_one_domain(room, forest, wants, plan.required, company, open_domains, without)
            return None if found is None else found[0]
        if len(wants) > 1:
            for depth in range(plan.preferred, -1, -1):
                found = place_in_one_domain(room, forest, wants, depth, company, None, without)
                if found is not None:
                    return found[0]
        return place(room, forest, wants, company, Scope(without=without))


def wants_of(roles: Sequence[Role], shapes: Sequence[Shape], needs: Sequence[int]) -> list[Want]:
    each = enumerate(zip(roles, shapes, needs, strict=True))
    return [Want(index, shape, need, role) for index, (role, shape, need) in each if need > 0]
