"""From readings to events of the brain: what changed about a gang, said in the fewest words.

The brain already counts its own plans as done. So a reading that only confirms a plan is no news, and seats a plan
holds for members that do not exist yet stay held; anything else replaces what the brain believed.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from muster.dialects.cluster import Key
from muster.dialects.reading import Reading
from muster.model.gang import Gang, Running, Seats
from muster.plan.holding import Holding
from muster.plan.state import State

Where = Counter[tuple[int, str]]


@dataclass(slots=True)
class Facts:
    """What the brain was told last of each gang."""

    state: State
    waiting: dict[Key, Gang] = field(default_factory=dict)
    running: dict[Key, str] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)  # by the brain's name for the gang

    def tell(self, key: Key, reading: Reading | None, now: float) -> None:
        """Bring the brain's view of one gang up to date."""
        if reading is None or reading.gang is None:
            self._forget(key, now)
        elif reading.running is not None:
            self._runs(key, reading.running, now)
        else:
            self._waits(key, reading.gang, now)

    def _forget(self, key: Key, now: float) -> None:
        gang = self.waiting.pop(key, None)
        if gang is not None:
            self.state.withdraw(gang.uid)
            self.keys.pop(gang.uid, None)
        uid = self.running.pop(key, None)
        if uid is not None:
            self.state.finish(uid, now)
            self.keys.pop(uid, None)

    def _waits(self, key: Key, gang: Gang, now: float) -> None:
        if key in self.waiting and alike(self.waiting[key], gang):
            return
        self._forget(key, now)
        self.waiting[key] = gang
        self.keys[gang.uid] = key
        self.state.submit(gang)

    def _runs(self, key: Key, running: Running, now: float) -> None:
        running = self._known_nodes(running)
        uid = self.running.get(key)
        if uid is not None and self._confirms(self.state.running[uid], running):
            return
        self._forget(key, now)
        self.running[key] = running.gang.uid
        self.keys[running.gang.uid] = key
        self.state.adopt(running)

    def _confirms(self, holding: Holding, running: Running) -> bool:
        """Whether it says nothing that the brain does not believe already."""
        if not alike(holding.gang, running.gang) or (holding.succeeded or []) != _done(running, holding):
            return False
        believed, told = self.believed(holding), seats_of(running.seats)
        if told - believed:
            return False
        held = believed - told
        ready = all(self.state.ledger.nodes[self.state.ledger.index[node]].ready for _, node in held)
        return ready and not (held and holding.stopping)

    def believed(self, holding: Holding) -> Where:
        names = self.state.ledger.names
        where: Where = Counter()
        for part in holding.parts:
            for node, count in zip(part.nodes.tolist(), part.counts.tolist(), strict=True):
                where[part.role, names[node]] += count
        return where

    def _known_nodes(self, running: Running) -> Running:
        """Without the seats on nodes that are gone: those members are lost."""
        index = self.state.ledger.index
        if all(node in index for seats in running.seats for node in seats.nodes):
            return running
        return replace(running, seats=tuple(_on_known(seats, index) for seats in running.seats))

    def started(self, key: Key) -> None:
        """A plan of the brain's own started it."""
        gang = self.waiting.pop(key, None)
        if gang is not None:
            self.running[key] = gang.uid


def _done(running: Running, holding: Holding) -> list[int]:
    done = list(running.succeeded)
    return done if any(done) or holding.succeeded else []


def _on_known(seats: Seats, index: dict[str, int]) -> Seats:
    kept = [(n, c) for n, c in zip(seats.nodes, seats.counts, strict=True) if n in index]
    return Seats(seats.role, tuple(n for n, _ in kept), tuple(c for _, c in kept))


def seats_of(seats: tuple[Seats, ...]) -> Where:
    where: Where = Counter()
    for part in seats:
        for node, count in zip(part.nodes, part.counts, strict=True):
            where[part.role, node] += count
    return where


def alike(one: Gang, other: Gang) -> bool:
    """The same gang asking for the same; what it was promised is the brain's own business."""
    return replace(one, promised=None) == replace(other, promised=None)
