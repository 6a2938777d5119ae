"""From a gang to what is asked of the cluster: shapes and numbers, its kind, and a place for it in any room."""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from muster.model.gang import Gang
from muster.plan.holding import Holding
from muster.plan.pick import close_together
from muster.plan.place import EVERYWHERE, Scope, Want, place, place_in_one_domain
from muster.plan.room import Future, Part, Room
from muster.plan.shapes import Bools, Shape
from muster.plan.tenants import Tenants
from muster.plan.waiting import Ask, Entry, Kind, is_plain

if TYPE_CHECKING:
    from muster.plan.state import State


class Asker:
    """Reads gangs against one set of nodes."""

    def __init__(self, state: "State") -> None:
        self.state = state
        self.nobody = Tenants(state.classes)
        self.in_use: dict[Shape | None, int] = {}  # shapes asked for or held; None stands for anything special

    # Entries and kinds

    def shapes(self, gang: Gang) -> tuple[Shape, ...]:
        return tuple(self.state.shapes.of(role) for role in gang.roles)

    def ask(self, gang: Gang) -> Ask:
        forest = self.state.forest
        closeness = gang.closeness
        required = forest.depth(closeness.required) if closeness.required else -1
        preferred = forest.depth(closeness.preferred) if closeness.preferred else -1
        return Ask(gang, self.shapes(gang), tuple(role.min for role in gang.roles), required, preferred)

    def entry(self, gangs: tuple[Gang, ...], number: int) -> Entry:
        entry = Entry(gangs[0].group or gangs[0].uid, tuple(self.ask(gang) for gang in gangs), number)
        lengths = [gang.length for gang in gangs]
        entry.length = max(inf if length is None else length for length in lengths)
        promised = [gang.promised.at for gang in gangs if gang.promised is not None]
        entry.promised = max(promised, default=None)
        return entry

    def join(self, entry: Entry, now: float = 0.0) -> None:
        known = len(self.state.queue.kinds)
        kind = self.state.queue.join(entry, _key(entry), now)
        if len(self.state.queue.kinds) > known:
            self.judge(kind)
        if not kind.hopeless:
            self.count(entry.asks, 1)

    def count(self, asks: Sequence[Ask], sign: int) -> None:
        """Keep score of what shapes are about: see `only_shape`."""
        for ask in asks:
            what = ask.shapes[0] if len(asks) == 1 and is_plain(ask) else None
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
        """Would it fit if nothing else ran? If not, nobody of this kind is planned until the nodes change."""
        from muster.plan.explain import why_never

        entry = kind.entries[0]
        if kind.single is not None:
            shape, need = kind.single
            fits = shape.most >= need
        else:
            fits = self._place(Future(self.state.ledger.capacity.copy()), entry, None, when_empty=True) is not None
        kind.hopeless = "" if fits else why_never(self.state, entry)

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
        seating: list[list[Part]] = []
        for ask in entry.asks:
            parts = self.seat(room, ask, ask.needs, without, when_empty=when_empty)
            if parts is None:
                break
            seating.append(parts)
            if len(entry.asks) > 1:
                for part in parts:
                    room.take(part)
        if len(entry.asks) > 1:
            for parts in seating:
                for part in parts:
                    room.give(part)
        return seating if len(seating) == len(entry.asks) else None

    def seat(
        self, room: Room, ask: Ask, needs: Sequence[int], without: Bools | None = None, *, when_empty: bool = False
    ) -> list[Part] | None:
        """So many members of each role of one gang, as close as it requires and then as it prefers."""
        forest = self.state.forest
        wants = self.wants(ask.gang, ask.shapes, needs, self.nobody if when_empty else self.state.tenants)
        scope = EVERYWHERE if without is None else Scope(without=without)
        if ask.required >= 0:
            open_domains = self.state.domains.open(ask.gang, ask.required, when_empty)
            found = place_in_one_domain(room, forest, wants, ask.required, open_domains, without)
            return None if found is None else found[0]
        if len(wants) > 1 and ask.preferred >= 0:
            for depth in range(ask.preferred, -1, -1):
                found = place_in_one_domain(room, forest, wants, depth, None, without)
                if found is not None:
                    return found[0]
        return place(room, forest, wants, scope)

    def wants(self, gang: Gang, shapes: Sequence[Shape], needs: Sequence[int], tenants: Tenants) -> list[Want]:
        wants = []
        for index, (role, shape, need) in enumerate(zip(gang.roles, shapes, needs, strict=True)):
            if need <= 0:
                continue
            want = Want(index, shape, need, role)
            if tenants.concerns(gang.namespace, role):
                want.limits = tenants.limits(gang.namespace, role)
            wants.append(want)
        return wants


def holding_ask(holding: Holding) -> Ask:
    gang = holding.gang
    return Ask(gang, holding.shapes, tuple(role.min for role in gang.roles), holding.domain[0], -1)


def _key(entry: Entry) -> object:
    """Entries of equal key stand or fall together."""
    asks = entry.asks
    if len(asks) == 1 and is_plain(asks[0]) and asks[0].preferred < 0:
        return asks[0].shapes[0].id, asks[0].needs[0]
    return tuple(
        (
            tuple(shape.id for shape in ask.shapes),
            ask.needs,
            ask.gang.closeness,
            tuple(role.parallelism for role in ask.gang.roles),
            ask.gang.namespace if any(role.rules.narrows_by_pods() for role in ask.gang.roles) else "",
            tuple(tuple(sorted(role.labels.items())) for role in ask.gang.roles if role.rules.narrows_by_pods()),
        )
        for ask in asks
    )
