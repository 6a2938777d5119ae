"""The future node by node, for clusters where shapes mix.

A promise keeps a witness: nodes that will be free at the promised time. A gang that outlasts the promise may
start if it stays off the witness, or if another witness is found without it. Witnesses are found anew whenever
that serves; the promise itself is only the time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from muster.plan.holding import Holding
from muster.plan.ledger import Ints, Ledger
from muster.plan.room import Future, Part, Room
from muster.plan.shapes import Bools
from muster.plan.waiting import Entry, by_time, minds_company

Placing = Callable[[Room, Entry, Bools | None], list[list[Part]] | None]
"""Place an entry's quorum in a room, without some nodes: parts per gang, or None."""

Seating = Sequence[Sequence[Part]]


@dataclass(slots=True)
class Promise:
    entry: Entry
    begin: float
    end: float
    seating: Seating
    mask: Bools

    def overlaps(self, begin: float, end: float) -> bool:
        return self.begin < end and begin < self.end


class Nodewise:
    def __init__(
        self,
        ledger: Ledger,
        placing: Placing,
        now: float,
        running: Iterable[Holding],
        promised: Iterable[Entry],
    ) -> None:
        self.ledger = ledger
        self.placing = placing
        self.running: dict[str, Holding] = {h.uid: h for h in running}
        self.promises: dict[str, Promise] = {}
        self.releases: Releases | None = None
        self.found: tuple[str, float, Seating] | None = None  # of the last search, for the promise that follows it
        self.lost: list[Entry] = []  # promises that cannot be kept
        for entry in sorted(promised, key=by_time):
            at = max(entry.promised or now, now)
            seating = self._seat(entry, at)
            if seating is None:
                self.lost.append(entry)
            else:
                self._keep(entry, at, seating)

    def earliest(self, entry: Entry, now: float, before: float = inf) -> float | None:
        """The first moment at which it fits beside every promise; None if no end in sight lets it in."""
        times = self._moments(now)
        lowest = self._first_fit(entry, times)
        for time, future, without in self._walk(entry, times[lowest:]):
            if time >= before:
                return None
            seating = self.placing(future, entry, without)
            if seating is not None:
                self.found = (entry.uid, time, seating)
                return time
        return None

    def _walk(self, entry: Entry, times: list[float]) -> Iterator[tuple[float, Future, Bools | None]]:
        """The room there is for a run from each moment on: what is free then, less what is promised during it."""
        if not times:
            return
        future = Future(self._table(times[0]))
        coming = sorted(
            (p for p in self.promises.values() if p.entry is not entry), key=lambda p: p.begin, reverse=True
        )
        during: list[Promise] = []
        last = times[0]
        for time in times:
            self._releases().give_back(future, last, time)
            last = time
            while coming and coming[-1].begin < time + entry.length:
                during.append(coming.pop())
                _take(future, during[-1].seating)
            for promise in [p for p in during if p.end <= time]:
                during.remove(promise)
                _give(future, promise.seating)
            yield time, future, _without(entry, during)

    def earlier(self, entry: Entry, now: float) -> float | None:
        assert entry.promised is not None
        kept = self.promises.pop(entry.uid)
        time = self.earliest(entry, now, before=entry.promised)
        self.promises[entry.uid] = kept
        return time

    def _first_fit(self, entry: Entry, times: list[float]) -> int:
        """Room only grows as gangs end, so where a gang begins to fit beside the running ones is found by halving."""
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            if self.placing(Future(self._table(times[middle])), entry, None) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _moments(self, now: float) -> list[float]:
        ends = {h.end for h in self.running.values() if now < h.end < inf and not h.expired}
        ends.update(p.end for p in self.promises.values() if now < p.end < inf)
        return [now, *sorted(ends)]

    def admits(self, entry: Entry, seating: Seating, now: float) -> bool:
        """Whether starting it there moves no promise. Promises in its way look for other nodes first."""
        concerned = [p for p in self.promises.values() if p.entry is not entry and p.overlaps(now, now + entry.length)]
        moved: list[tuple[Promise, Seating]] = []
        for promise in concerned:
            if any(promise.mask[part.nodes].any() for parts in seating for part in parts):
                if minds_company(entry) or minds_company(promise.entry):
                    return False
                other = self._seat(promise.entry, promise.begin, seating)
                if other is None:
                    return False
                moved.append((promise, other))
        if len(moved) > 1:  # each moved alone; together they could meet on the same nodes
            return False
        for promise, other in moved:
            self._keep(promise.entry, promise.begin, other)
        return True

    def beside(self, entry: Entry, now: float, without: Bools | None) -> Seating | None:
        """Seats for it now, in what the promises that it outlasts leave over."""
        self._renew()
        room, without = self._left_over(self.ledger.free.copy(), entry, now, without)
        return self.placing(room, entry, without)

    def on_its_own(self, entry: Entry) -> Seating | None:
        """Seats for it now, on the very nodes it was promised with."""
        room, promise = Future(self.ledger.free.copy()), self.promises[entry.uid]
        if minds_company(entry) or any(ask.gang.closeness.resources for ask in entry.asks):
            return self.placing(room, entry, ~promise.mask)
        for parts in promise.seating:
            for part in parts:
                if (room.slots(part.shape)[part.nodes] < part.counts).any():
                    return None
                room.take(part)
        return promise.seating

    def _left_over(self, free: Ints, entry: Entry, begin: float, without: Bools | None) -> tuple[Future, Bools | None]:
        """Room beside every promise that overlaps its run; no shared nodes where company matters."""
        room = Future(free)
        during: list[Promise] = []
        for promise in self.promises.values():
            if promise.entry is entry or not promise.overlaps(begin, begin + entry.length):
                continue
            _take(room, promise.seating)
            during.append(promise)
        kept = _without(entry, during)
        return room, kept if without is None else without if kept is None else without | kept

    def _renew(self) -> None:
        """A lone promise takes the nodes that a new leader would find for it, whatever it was moved to before."""
        if len(self.promises) == 1:
            (promise,) = self.promises.values()
            seating = self._seat(promise.entry, promise.begin)
            if seating is not None:
                self._keep(promise.entry, promise.begin, seating)

    def kept_until(self, end: float) -> Bools | None:
        """The nodes promised to anyone before a time."""
        self._renew()
        masks = [p.mask for p in self.promises.values() if p.begin < end]
        return np.logical_or.reduce(masks) if masks else None

    def promise(self, entry: Entry) -> None:
        assert entry.promised is not None
        found, self.found = self.found, None
        if found is None or found[:2] != (entry.uid, entry.promised):
            seating = self._seat(entry, entry.promised)
            assert seating is not None
        else:
            seating = found[2]
        self._keep(entry, entry.promised, seating)

    def overdue(self, entry: Entry, now: float) -> None:
        """Somebody overstays. Room is kept for the one who waits until it has had its run."""
        promise = self.promises[entry.uid]
        promise.begin, promise.end = now, now + entry.length

    def revoke(self, entry: Entry) -> None:
        self.promises.pop(entry.uid, None)

    def _keep(self, entry: Entry, at: float, seating: Seating) -> None:
        mask = np.zeros(len(self.ledger.nodes), dtype=bool)
        for parts in seating:
            for part in parts:
                mask[part.nodes] = True
        self.promises[entry.uid] = Promise(entry, at, at + entry.length, seating, mask)

    def _seat(self, entry: Entry, time: float, besides: Seating = ()) -> Seating | None:
        """Nodes for it from `time` on, beside every other promise that overlaps its run, and beside another start."""
        room, without = self._left_over(self._table(time), entry, time, None)
        _take(room, besides)
        return self.placing(room, entry, without)

    def _table(self, time: float) -> Ints:
        return self._releases().free_at(time)

    def _releases(self) -> "Releases":
        if self.releases is None:
            self.releases = Releases(self.ledger, self.running.values())
        return self.releases

    def started(self, holding: Holding, _members: int, _now: float) -> None:
        self.running[holding.uid] = holding
        self.releases = None

    def ended(self, holding: Holding, _members: int, _now: float) -> None:
        if not holding.parts:
            self.running.pop(holding.uid, None)
        self.releases = None


def _without(entry: Entry, during: Sequence[Promise]) -> Bools | None:
    """The nodes it must stay off because company matters to it or to who was promised them."""
    minds = minds_company(entry)
    masks = [promise.mask for promise in during if minds or minds_company(promise.entry)]
    return np.logical_or.reduce(masks) if masks else None


def _take(room: Room, seating: Seating) -> None:
    for parts in seating:
        for part in parts:
            room.take(part)


def _give(room: Room, seating: Seating) -> None:
    for parts in seating:
        for part in parts:
            room.give(part)


class Releases:
    """What running gangs give back, in the order of their ends, ready to be summed up to any time."""

    def __init__(self, ledger: Ledger, running: Iterable[Holding]) -> None:
        self.ledger = ledger
        ending = sorted((h for h in running if h.end < inf and not h.expired), key=lambda h: (h.end, h.uid))
        parts = [(h.end, part) for h in ending for part in h.parts]
        sizes = [len(part.nodes) for _, part in parts]
        self.ends = np.repeat([end for end, _ in parts], sizes) if parts else np.zeros(0)
        self.nodes = np.concatenate([part.nodes for _, part in parts]) if parts else np.zeros(0, dtype=np.int64)
        self.amounts = np.zeros((ledger.free.shape[0], len(self.nodes)), dtype=np.int64)
        at = 0
        for (_, part), size in zip(parts, sizes, strict=True):
            for row, amount in part.shape.request:
                self.amounts[row, at : at + size] = part.counts * amount
            at += size

    def free_at(self, time: float) -> Ints:
        free = self.ledger.free.copy()
        self._add(free, 0, self._until(time))
        return free

    def give_back(self, future: Future, since: float, until: float) -> None:
        """What comes back after one moment, up to another."""
        if until > since:
            self._add(future.free, self._until(since), self._until(until))

    def _until(self, time: float) -> int:
        return int(np.searchsorted(self.ends, time, side="right"))

    def _add(self, free: Ints, first: int, last: int) -> None:
        for row in range(len(free)):
            np.add.at(free[row], self.nodes[first:last], self.amounts[row, first:last])
