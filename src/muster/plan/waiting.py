"""Gangs that wait, in order, grouped into kinds: what is true of one gang of a kind's chances is true of all.

A queue of ten thousand gangs is usually a few dozen kinds. A pass looks at the first of each kind; once one did
not fit, nobody of its kind is looked at again in that pass.
"""

from bisect import insort
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from operator import attrgetter

from muster.model.gang import Gang
from muster.plan.policy import Policy
from muster.plan.shapes import Shape

Rank = tuple[float, ...]


@dataclass(slots=True)
class Ask:
    """One gang's quorum: shape and number per role, and the level all of it must share (-1: none)."""

    gang: Gang
    shapes: tuple[Shape, ...]
    needs: tuple[int, ...]
    required: int
    preferred: int

    @property
    def members(self) -> int:
        return sum(self.needs)


@dataclass(slots=True, eq=False)
class Entry:
    """What waits: a gang, or a group of gangs that start together. `asks` has one item per gang."""

    uid: str
    asks: tuple[Ask, ...]
    number: int  # order of arrival
    rank: Rank = ()
    kind: "Kind" = field(default=None, repr=False)  # type: ignore[assignment]  # set on joining the queue
    length: float = inf  # of the longest gang; unknown is for ever
    promised: float | None = None
    aged: bool = False

    @property
    def gang(self) -> Gang:
        return self.asks[0].gang


RANK = attrgetter("rank")


@dataclass(slots=True, eq=False)
class Kind:
    """Gangs that ask for the same: `single` is the one shape and number of a gang with nothing special about it."""

    key: object
    single: tuple[Shape, int] | None
    entries: list[Entry] = field(default_factory=list)
    hopeless: str = ""  # why it does not even fit the empty cluster
    lacks: tuple[object, ...] = ()  # why the first of it did not start in the last pass


class Queue:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.kinds: dict[object, Kind] = {}
        self.entries: dict[str, Entry] = {}
        self.young: list[tuple[float, int, Entry]] = []  # by submission: who comes of age next
        self.ranked_at: float | None = None

    def join(self, entry: Entry, key: object, now: float) -> Kind:
        kind = self.kinds.get(key)
        if kind is None:
            kind = self.kinds[key] = Kind(key, single(entry))
        entry.kind = kind
        entry.rank = self.rank(entry, now)
        insort(kind.entries, entry, key=RANK)
        self.entries[entry.uid] = entry
        if not entry.aged and self.policy.age_bound < inf:
            heappush(self.young, (entry.gang.submitted, entry.number, entry))
        return kind

    def leave(self, entry: Entry) -> None:
        del self.entries[entry.uid]
        entries = entry.kind.entries
        if entries[0] is entry:
            del entries[0]
        else:
            entries.remove(entry)
        if not entries:
            del self.kinds[entry.kind.key]

    def rank(self, entry: Entry, now: float) -> Rank:
        """Aged gangs first, in order of submission; then by the policy; then by arrival."""
        gang = entry.asks[0].gang
        order = self.policy.order
        entry.aged = now - gang.submitted >= self.policy.age_bound
        classes = [part.key(gang, now) for part in order if part.name == "priority"]
        if entry.aged:
            return (*classes, 0.0, gang.submitted, entry.number)
        return (*classes, 1.0, *[part.key(gang, now) for part in order if part.name != "priority"], entry.number)

    def age(self, now: float) -> bool:
        """Bring ranks up to date. True if the order may have changed."""
        bound = self.policy.age_bound
        if not self.policy.moves and not (self.young and self.young[0][0] + bound <= now):
            return False
        aged = []
        while self.young and self.young[0][0] + bound <= now:
            entry = heappop(self.young)[2]
            if entry.uid in self.entries and not entry.aged:
                aged.append(entry)
        moved = self.policy.moves and now != self.ranked_at
        self.ranked_at = now
        for entry in aged:
            entry.rank = self.rank(entry, now)
        if moved:
            for entry in self.entries.values():
                entry.rank = self.rank(entry, now)
        kinds = self.kinds.values() if moved else {id(e.kind): e.kind for e in aged}.values()
        for kind in kinds:
            kind.entries.sort(key=RANK)
        return moved or bool(aged)

    def open_kinds(self) -> list[Kind]:
        """Kinds that could start on some state of the cluster."""
        return [kind for kind in self.kinds.values() if not kind.hopeless]


def is_plain(ask: Ask) -> bool:
    """One role, anywhere, each member by itself: its chances are a matter of counting slots."""
    if len(ask.shapes) != 1 or ask.required >= 0:
        return False
    role = ask.gang.roles[0]
    layout = role.parallelism
    return (layout is None or layout.tp == layout.pp == 1) and not role.rules.narrows_by_pods()


def single(entry: Entry) -> tuple[Shape, int] | None:
    ask = entry.asks[0]
    return (ask.shapes[0], ask.needs[0]) if len(entry.asks) == 1 and is_plain(ask) else None
