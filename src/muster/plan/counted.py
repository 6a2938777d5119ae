"""The future in counts: exact while everything that runs or waits asks for the same shape.

Then a member takes exactly one slot wherever it sits and gives exactly one back, so a promise is a number at a
time, nodes need not be chosen before the start, and any gang that the numbers admit finds its nodes.
"""

from collections.abc import Iterable
from math import inf

from muster.plan.holding import Holding
from muster.plan.profile import Profile
from muster.plan.shapes import Shape
from muster.plan.waiting import Entry, by_time


class Counted:
    def __init__(self, shape: Shape, now: float, running: Iterable[Holding], promised: Iterable[Entry]) -> None:
        shape.refresh()
        self.shape = shape
        self.profile = Profile(now, shape.total)
        self.kept: dict[str, tuple[float, float]] = {}  # from when to when room is kept for whom
        self.lost: list[Entry] = []  # promises that cannot be kept
        for holding in running:
            if not holding.expired:
                self.profile.add(holding.end, inf, holding.members())
        for entry in sorted(promised, key=by_time):
            begin = entry.promised or now
            if self.profile.least(max(begin, now), max(begin, now) + entry.length) < _need(entry):
                self.lost.append(entry)
            else:
                self._keep(entry, begin, max(begin, now) + entry.length)

    def earliest(self, entry: Entry, now: float) -> float | None:
        self.profile.forget_before(now)
        return self.profile.earliest(_need(entry), entry.length)

    def earlier(self, entry: Entry, now: float) -> float | None:
        """A start before the promised one, if there is any."""
        assert entry.promised is not None
        self.profile.forget_before(now)
        return self.profile.earliest(_need(entry), entry.length, before=entry.promised)

    def admits(self, entry: Entry, now: float) -> bool:
        """Whether it can start now without moving any promise."""
        need = _need(entry)
        return self.profile.least(now, now + entry.length) >= need

    def promise(self, entry: Entry) -> None:
        assert entry.promised is not None
        self._keep(entry, entry.promised, entry.promised + entry.length)

    def _keep(self, entry: Entry, begin: float, end: float) -> None:
        self.kept[entry.uid] = (begin, end)
        self.profile.add(begin, end, -_need(entry))

    def overdue(self, entry: Entry, now: float) -> None:
        """Somebody overstays. Room is kept for the one who waits until it has had its run."""
        self.revoke(entry)
        self._keep(entry, now, now + entry.length)

    def revoke(self, entry: Entry) -> None:
        self.profile.add(*self.kept.pop(entry.uid), _need(entry))

    def started(self, holding: Holding, members: int, now: float) -> None:
        self.profile.add(now, holding.end, -members)

    def ended(self, holding: Holding, members: int, now: float) -> None:
        """Room came back; what was expected later comes back early."""
        self.profile.add(now, holding.end, members)


def _need(entry: Entry) -> int:
    single = entry.kind.single
    assert single is not None
    return single[1]
