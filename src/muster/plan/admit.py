"""Admitting: who starts now, who is promised a start, and who may pass.

A pass goes down the queue. A gang that fits starts, unless that would move a promise made to a gang before it.
The first ones that do not fit are promised the earliest start there is; the rest pass around them or wait.
A pass looks only at what changed: without new room or a new order, only at gangs that have just arrived.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import takewhile

from muster.model.gang import Reservation
from muster.plan.actions import Plan, Reserve
from muster.plan.hold import hold_for
from muster.plan.nodewise import Nodewise, Seating
from muster.plan.shapes import Bools
from muster.plan.start import start
from muster.plan.state import State
from muster.plan.waiting import RANK, Entry, Kind

SEARCHES = 16
"""Gangs in a pass that may look in vain for a time to be promised; each look costs a walk through the future."""


def admit(state: State, now: float, plan: Plan) -> None:
    reordered = state.queue.age(now)
    if state.queue.entries:
        _down_the_queue(state, now, plan, reordered=reordered)
    state.fresh.clear()
    state.room_grew = state.news = False


def _down_the_queue(state: State, now: float, plan: Plan, *, reordered: bool) -> None:
    this = Pass(state, now, plan)
    _take_back_promises(state, reordered=reordered)
    if state.promises:
        state.future(now)  # which finds out whether promises can still be kept
        this.keep_promises()
        if state.news:
            this.improve_promises()
    if state.room_grew:
        this.whole_queue()
    else:
        this.in_turn(sorted(state.fresh, key=RANK) if len(state.fresh) > 1 else state.fresh)


def _take_back_promises(state: State, *, reordered: bool) -> None:
    """Where promises are few they go to who is first: once someone else is, they are given out anew.

    A new leader may find more of them written down than there can be: those of gangs that were outranked since.
    """
    most = state.policy.reservations
    if most is None or not state.promises:
        return
    if len(state.promises) > most:
        for entry in sorted(state.promises.values(), key=RANK)[most:]:
            state.revoke(entry)
            state.room_grew = True
    if (reordered or state.room_grew or state.fresh) and _outranked(state):
        state.room_grew = True
        for entry in [entry for entry in state.promises.values() if not entry.aged]:
            state.revoke(entry)


def _outranked(state: State) -> bool:
    """Whether someone came, or came of age, before one who has held a promise for longer than that.

    Who was there already and got no promise does not take another's away when a time for it is found.
    """
    holder = max((entry for entry in state.promises.values() if not entry.aged), key=RANK, default=None)
    if holder is None:
        return False
    before = (
        entry
        for kind in state.queue.open_kinds()
        for entry in takewhile(lambda entry: entry.rank < holder.rank, kind.entries)
        if entry.promised is None
    )
    return any(state.queue.moves or _came(state, entry) >= holder.since for entry in before)


def _came(state: State, entry: Entry) -> float:
    return entry.gang.submitted + (state.policy.age_bound if entry.aged else 0.0)


class Pass:
    """One look down the queue."""

    __slots__ = ("now", "plan", "state", "too_long", "without_time")

    def __init__(self, state: State, now: float, plan: Plan) -> None:
        self.state = state
        self.now = now
        self.plan = plan
        self.without_time = 0  # gangs of whose start nobody could tell the time
        self.too_long: dict[int, float] = {}  # kinds with room, by the shortest run that would move a promise

    # Promises

    def keep_promises(self) -> None:
        """Whose time has come starts, if those who should have left by now have."""
        for entry in self.promised():
            future = self.state.future(self.now)
            if entry.promised is None or entry.promised > self.now:
                continue
            if self.redeem(entry):
                self.state.room_grew = True  # there is a promise to give again
            else:
                future.overdue(entry, self.now)

    def promised(self) -> list[Entry]:
        """Who holds a promise, in queue order."""
        entries = list(self.state.promises.values())
        if len(entries) > 1:
            entries.sort(key=RANK)
        return entries

    def redeem(self, entry: Entry) -> bool:
        """Start it where it disturbs no other promise; only the first of all may have to, once others overstayed."""
        state = self.state
        future = state.future(self.now)
        if not self.may_fit(entry.kind):
            return False
        seating: Seating | None = None
        if isinstance(future, Nodewise):
            seating = self._beside_promises(entry, None) or future.on_its_own(entry)
        if seating is None:
            if isinstance(future, Nodewise) and any(other.rank < entry.rank for other in state.promises.values()):
                return False
            seating = state.asker.place(state.present, entry, None)
            if seating is None:
                return False
            state.outlook = None  # others may have to look for other nodes
        start(state, entry, seating, self.now, self.plan)
        return True

    def improve_promises(self) -> None:
        """Room came back early: promises move up, in queue order, never down."""
        for entry in self.promised():
            future = self.state.future(self.now)
            if entry.promised is None or entry.promised <= self.now:
                continue
            time = future.earlier(entry, self.now)
            if time is not None:
                self.state.revoke(entry)
                self._grant(entry, time)
                if time > self.now or not self.redeem(entry):
                    self._announce(entry, entry.since)

    def promise(self, entry: Entry) -> bool:
        """Promise it the earliest start there is. False if no end in sight lets it in."""
        time = self.state.future(self.now).earliest(entry, self.now)
        if time is not None:
            self._grant(entry, time)
            self._announce(entry, self.now)
        return time is not None

    def _grant(self, entry: Entry, time: float) -> None:
        entry.promised = time
        self.state.promises[entry.uid] = entry
        self.state.future(self.now).promise(entry)

    def _announce(self, entry: Entry, since: float) -> None:
        """Have it written down, unless it is already."""
        time = entry.promised
        if time is None or entry.written == time:
            return
        entry.written, entry.since = time, since
        for ask in entry.asks:
            self.plan.actions.append(
                Reserve(ask.gang, Reservation(time, count=ask.blueprint.members, firm=self.state.firm, since=since))
            )

    def promises_left(self) -> bool:
        most = self.state.policy.reservations
        if self.state.held is not None or self.without_time >= SEARCHES:
            return False
        return most is None or len(self.state.promises) < most

    # Starting

    def start_if_fits(self, entry: Entry, held: Bools | None) -> bool:
        """Start it now if there is room, promises aside and without the nodes held for someone else."""
        state = self.state
        if not self.may_fit(entry.kind):
            return False
        seating: Seating | None
        if not state.promises:
            seating = state.asker.place(state.present, entry, held)
        else:
            seating = self._beside_promises(entry, held)
        if seating is None:
            return False
        start(state, entry, seating, self.now, self.plan)
        return True

    def _beside_promises(self, entry: Entry, held: Bools | None) -> Seating | None:
        state, now = self.state, self.now
        future = state.future(now)
        if not isinstance(future, Nodewise):
            if not future.admits(entry, now):
                self.too_long[id(entry.kind)] = entry.length
                return None
            return state.asker.place(state.present, entry, held)
        seating = state.asker.place(state.present, entry, held)
        if seating is None or future.admits(entry, seating, now):
            return seating
        beside = future.beside(entry, now, held)
        if beside is None:
            self.too_long[id(entry.kind)] = entry.length
        return beside

    def may_fit(self, kind: Kind) -> bool:
        """The cheap half of the question."""
        single = kind.single
        if single is None:
            return True
        shape = single[0]
        if shape.cursor != self.state.ledger.now:
            shape.refresh()
        return shape.total >= single[1]

    # The two ways down the queue

    def in_turn(self, entries: Iterable[Entry]) -> None:
        """Gangs that have just arrived, behind everything that waits already."""
        for entry in entries:
            if not entry.kind.hopeless and (self.state.policy.passing or not self._someone_before(entry)):
                self.consider(entry)

    def _someone_before(self, entry: Entry) -> bool:
        return any(kind.entries[0].rank < entry.rank for kind in self.state.queue.open_kinds())

    def consider(self, entry: Entry) -> bool:
        """Start it, or promise it a start if there are promises left."""
        if entry.promised is not None:
            return False
        state = self.state
        if self.start_if_fits(entry, state.held):
            return True
        if self.promises_left() and not self.promise(entry):
            self.without_time += 1
            if entry.aged:
                state.held = hold_for(state, entry)
                return self.start_if_fits(entry, ~state.held)
        return False

    def whole_queue(self) -> None:
        """Everyone, in order: first those who can be promised a start, then those who can only pass."""
        policy = self.state.policy
        self.state.held = None
        kinds = self.state.queue.open_kinds()
        if self.promises_left() or not policy.passing:
            scan = Heads(kinds)
            for entry in scan:
                if self.consider(entry):
                    continue
                if not policy.passing:
                    return
                if not self.promises_left():
                    break
            kinds = scan.rest()
        kinds = [kind for kind in kinds if self.may_fit(kind)]
        if kinds:
            self.backfill(kinds)

    def backfill(self, kinds: list[Kind]) -> None:
        """No promise is left to give: those that fit beside the ones given, perhaps in an order of their own."""
        order = self.state.policy.scan
        if order is None:
            scan = Heads(kinds)
            for entry in scan:
                limit = self.too_long.get(id(entry.kind))
                if entry.promised is not None or (limit is not None and entry.length >= limit):
                    continue
                if not self.start_if_fits(entry, self.state.held) and id(entry.kind) not in self.too_long:
                    scan.close()  # no room: that goes for all of its kind
            return
        entries = [entry for kind in kinds for entry in kind.entries if entry.promised is None]
        for entry in sorted(entries, key=lambda e: (order.key(e.gang, self.now), e.rank)):
            self.start_if_fits(entry, self.state.held)


class Heads:
    """Kinds merged into one queue by rank. `close` ends the kind of the gang just seen."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.heads = [(kind.entries[0].rank, kind, list(kind.entries), 0) for kind in kinds]
        heapify(self.heads)
        self.closed = False

    def __iter__(self) -> Iterator[Entry]:
        while self.heads:
            _, kind, entries, at = self.heads[0]
            self.closed = False
            yield entries[at]
            if self.closed or at + 1 == len(entries):
                heappop(self.heads)
            else:
                heapreplace(self.heads, (entries[at + 1].rank, kind, entries, at + 1))

    def close(self) -> None:
        self.closed = True

    def rest(self) -> list[Kind]:
        return [kind for _, kind, _, _ in self.heads]
