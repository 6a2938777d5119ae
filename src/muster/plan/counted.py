"""The future in counts: exact while everything that runs or waits asks for the same shape.

Then a member takes exactly one slot wherever it sits and gives exactly one back, so a promise is a number at a
time, nodes need not be chosen before the start, and any gang that the numbers admit finds its nodes.
"""

from collections.abc import Iterable
from math import inf

from muster.plan.holding import Holding
from muster.plan.profile import Profile
from muster.plan.shapes import Shape
from muster.plan.waiting import Entry


class Counted:
    def __init__(self, shape: Shape, now: float, running: Iterable[Holding], promised: Iterable[Entry]) -> None:
        shape.refresh()
        self.shape = shape
        self.profile = Profile(now, shape.total)
        self.firsts: dict[str, float] = {}
        for holding in running:
            if not holding.expired:
                self.profile.add(holding.end, inf, holding.members())
        for entry in promised:
            self.promise(entry)

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
        self.profile.add(entry.promised, entry.promised + entry.length, -_need(entry))

    def revoke(self, entry: Entry) -> None:
        assert entry.promised is not None
        self.profile.add(entry.promised, entry.promised + entry.length, _need(entry))

    def started(self, holding: Holding, members: int, now: float) -> None:
        self.profile.add(now, holding.end, -members)

    def ended(self, holding: Holding, members: int, now: float) -> None:
        """Room came back; what was expected later comes back early."""
        self.profile.add(now, holding.end, members)


def _need(entry: Entry) -> int:
    single = entry.kind.single
    assert single is not None
    return single[1]
