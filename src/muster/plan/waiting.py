"""Gangs that wait, in order, grouped into kinds: what is true of one gang of a kind's chances is true of all.

A queue of ten thousand gangs is usually a few dozen kinds. A pass looks at the first of each kind; once one did
not fit, nobody of its kind is looked at again in that pass.
"""

from bisect import insort
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from operator import attrgetter

from muster.model.gang import Gang, Role
from muster.plan.policy import Policy
from muster.plan.shapes import Shape

Rank = tuple[float, ...]


@dataclass(slots=True)
class Blueprint:
    """A gang's quorum against one set of nodes, the same for every gang with these roles and this closeness."""

    roles: tuple[Role, ...]
    shapes: tuple[Shape, ...]
    needs: tuple[int, ...]
    members: int
    bends: bool  # some role can use more than its quorum
    required: int  # depth of the level all of it must share; -1: none
    preferred: int
    unknown_level: str  # required, but no node is labelled with it
    plain: Shape | None  # its one shape, if its chances are a matter of counting slots
    key: object


@dataclass(slots=True)
class Ask:
    """One gang that waits, and what it asks for."""

    gang: Gang
    blueprint: Blueprint


@dataclass(slots=True, eq=False)
class Entry:
    """What waits: a gang, or a group of gangs that start together. `asks` has one item per gang."""

    uid: str
    asks: tuple[Ask, ...]
    key: object  # entries of equal key stand or fall together
    number: int  # order of arrival
    rank: Rank = ()
    kind: "Kind" = field(default=None, repr=False)  # type: ignore[assignment]  # set on joining the queue
    length: float = 0.0  # of the longest gang; unknown is for ever
    promised: float | None = None
    written: float | None = None  # the promise its owner knows of, which may have been taken back since
    since: float = 0.0  # when that promise was given
    aged: bool = False

    @property
    def gang(self) -> Gang:
        return self.asks[0].gang


RANK = attrgetter("rank")


def by_time(entry: Entry) -> tuple[float, Rank]:
    """The order in which promises fall due."""
    return (inf if entry.promised is None else entry.promised), entry.rank


@dataclass(slots=True, eq=False)
class Kind:
    """Gangs that ask for the same: `single` is the one shape and number of a gang with nothing special about it."""

    key: object
    single: tuple[Shape, int] | None
    entries: list[Entry] = field(default_factory=list)
    hopeless: str = ""  # why it does not even fit the empty cluster


class Queue:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.kinds: dict[object, Kind] = {}
        self.entries: dict[str, Entry] = {}
        self.moves = policy.moves
        self.classes = [part.key for part in policy.order if part.name == "priority"]
        self.orders = [part.key for part in policy.order if part.name != "priority"]
        self.young: list[tuple[float, int, Entry]] = []  # by submission: who comes of age next
        self.ranked_at: float | None = None

    def join(self, entry: Entry, now: float) -> Kind:
        kind = self.kinds.get(entry.key)
        if kind is None:
            kind = self.kinds[entry.key] = Kind(entry.key, single(entry))
        self.ranked_at = None
        entry.kind = kind
        entry.rank = self.rank(entry, now)
        if kind.entries and entry.rank < kind.entries[-1].rank:
            insort(kind.entries, entry, key=RANK)
        else:
            kind.entries.append(entry)
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
        """Aged gangs first, in order of submission; then by the policy; then by submission."""
        gang = entry.asks[0].gang
        entry.aged = now - gang.submitted >= self.policy.age_bound
        classes = [key(gang, now) for key in self.classes]
        if entry.aged:
            return (*classes, 0.0, gang.submitted, entry.number)
        return (*classes, 1.0, *[key(gang, now) for key in self.orders], gang.submitted, entry.number)

    def age(self, now: float) -> bool:
        """Bring ranks up to date. True if the order may have changed."""
        bound = self.policy.age_bound
        if not self.moves and not (self.young and self.young[0][0] + bound <= now):
            return False
        aged = []
        while self.young and self.young[0][0] + bound <= now:
            entry = heappop(self.young)[2]
            if entry.uid in self.entries and not entry.aged:
                aged.append(entry)
        moved = self.moves and now != self.ranked_at
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


def plain_shape(roles: tuple[Role, ...], shapes: tuple[Shape, ...], required: int) -> Shape | None:
    """One role, anywhere, each member by itself: then the shape tells all."""
    if len(roles) != 1 or required >= 0:
        return None
    layout = roles[0].parallelism
    rules = roles[0].rules
    if (layout is not None and layout.tp * layout.pp > 1) or rules.narrows_by_pods() or rules.pods_preferred:
        return None
    return shapes[0]


def minds_company(entry: Entry) -> bool:
    """Whether who runs on a node, and not just what is free there, decides if it may."""
    return any(role.rules.narrows_by_pods() for ask in entry.asks for role in ask.gang.roles)


def single(entry: Entry) -> tuple[Shape, int] | None:
    plan = entry.asks[0].blueprint
    return (plan.plain, plan.members) if len(entry.asks) == 1 and plan.plain is not None else None
