"""Which slots of the cluster each job held: what a Gantt chart draws and jobs.csv lists.

The planner counts amounts on nodes; people, and tools such as evalys, look at numbered resources. So the
counted resource of all nodes is numbered through in node order, and each job is given free numbers
of its nodes, in as few pieces as can be, for as long as it ran. A slot is one CPU or card; where jobs share
cards, the largest part of one that all shares are multiples of.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.model.gang import Gang
from muster.model.node import Node
from muster.sim.outcome import History, Outcome
from muster.sim.workload import PER_UNIT

Range = tuple[int, int]  # first slot, and the one after the last


@dataclass(frozen=True, slots=True)
class Slots:
    """`held[i]` are the ranges of the i-th outcome; `first[name]` is where a node's slots begin."""

    count: int
    unit: str
    size: int  # of the unit's base amount
    first: dict[str, int]
    held: list[tuple[Range, ...]]

    def asked(self, outcome: Outcome) -> int:
        """How many slots the job asks for."""
        return _asked(outcome.job.gang, self.unit) // self.size


class _Free:
    """Free ranges of one node, in order and never touching each other."""

    __slots__ = ("ranges",)

    def __init__(self, begin: int, end: int) -> None:
        self.ranges: list[Range] = [(begin, end)] if end > begin else []

    def take(self, amount: int) -> list[Range]:
        """In as few pieces as can be: the tightest range that holds all of it, else the largest ones first."""
        taken: list[Range] = []
        while amount > 0 and self.ranges:
            begin, end = self._tightest(amount) or max(self.ranges, key=_length)
            cut = min(end, begin + amount)
            at = bisect_left(self.ranges, (begin, end))
            self.ranges[at : at + 1] = [(cut, end)] if cut < end else []
            taken.append((begin, cut))
            amount -= cut - begin
        return taken

    def _tightest(self, amount: int) -> Range | None:
        return min((each for each in self.ranges if _length(each) >= amount), key=_length, default=None)

    def give(self, freed: Iterable[Range]) -> None:
        for released in freed:
            begin, end = released
            at = bisect_left(self.ranges, released)
            if at < len(self.ranges) and self.ranges[at][0] == end:
                end = self.ranges.pop(at)[1]
            if at > 0 and self.ranges[at - 1][1] == begin:
                begin = self.ranges.pop(at - 1)[0]
            insort(self.ranges, (begin, end))


def _length(each: Range) -> int:
    return each[1] - each[0]


def assign(history: History, nodes: Sequence[Node]) -> Slots:
    """Walk through starts and ends in time, ends first where both fall on one instant."""
    unit = history.unit
    size = _slot_size(history, nodes)
    free: dict[str, _Free] = {}
    first: dict[str, int] = {}
    count = 0
    for node in nodes:
        first[node.name] = count
        end = count + node.capacity.get(unit, 0) // size
        free[node.name] = _Free(count, end)
        count = end
    held: list[tuple[Range, ...]] = [()] * len(history.outcomes)
    mine: dict[int, list[tuple[str, list[Range]]]] = {}
    for _, starts, index in sorted(_events(history.outcomes)):
        if starts:
            outcome = history.outcomes[index]
            share = _per_member(outcome.job.gang, unit) // size
            mine[index] = [(name, free[name].take(members * share)) for name, members in outcome.nodes]
            held[index] = _joined(part for _, ranges in mine[index] for part in ranges)
        else:
            for name, ranges in mine.pop(index):
                free[name].give(ranges)
    return Slots(count, unit, size, first, held)


def interval_set(ranges: Iterable[Range]) -> str:
    """Ranges the way evalys writes sets of resources: `0-3 7`."""
    return " ".join(str(begin) if end == begin + 1 else f"{begin}-{end - 1}" for begin, end in ranges)


def _events(outcomes: Sequence[Outcome]) -> Iterable[tuple[float, bool, int]]:
    for index, outcome in enumerate(outcomes):
        if outcome.started is not None and outcome.finished is not None and outcome.finished > outcome.started:
            yield outcome.started, True, index
            yield outcome.finished, False, index


def _asked(gang: Gang, unit: str) -> int:
    return sum(role.min * role.request.get(unit, 0) for role in gang.roles)


def _per_member(gang: Gang, unit: str) -> int:
    """What one member holds, in base units; the mean where roles differ: outcomes do not tell them apart."""
    return -(-_asked(gang, unit) // max(1, gang.members))


def _slot_size(history: History, nodes: Sequence[Node]) -> int:
    roles = {id(role): role for outcome in history.outcomes for role in outcome.job.gang.roles}.values()
    amounts = [role.request.get(history.unit, 0) for role in roles]
    amounts += [node.capacity.get(history.unit, 0) for node in nodes]
    return math.gcd(PER_UNIT.get(history.unit, 1), *amounts) or 1


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for begin, end in sorted(ranges):
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return tuple(joined)
