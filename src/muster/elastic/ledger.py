"""Where every second of a GPU went: each in exactly one bucket, from submission to the end.

A step that is computed counts as useful until a rollback takes it back; then the same seconds count as
recomputed. Memory is bounded: totals, a coarse timeline for the picture, and the steps that could still be
lost.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum


class Bucket(StrEnum):
    QUEUE = "queue"
    STARTUP = "startup"
    USEFUL = "useful"
    STALL = "stall"
    RECONFIGURE = "reconfigure"
    RECOMPUTED = "recomputed"
    IDLE = "idle"
    UNKNOWN = "unknown"


CELLS = 512


@dataclass(frozen=True, slots=True)
class Interval:
    start: float
    stop: float
    step: int


@dataclass(slots=True)
class Ledger:
    """One GPU's seconds on one monotonic clock."""

    start: float
    bucket: Bucket = Bucket.STARTUP
    now: float = field(default=0.0)
    totals: dict[Bucket, float] = field(default_factory=dict)
    cells: dict[int, dict[Bucket, float]] = field(default_factory=dict)
    cell: float = 0.25
    pending: deque[Interval] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.now = self.start

    def switch(self, now: float, bucket: Bucket) -> None:
        """Everything until now was in the bucket so far; what follows is in `bucket`."""
        self.until(now)
        self.bucket = bucket

    def until(self, now: float) -> None:
        """Close the running interval; a clock that steps back adds nothing."""
        if now > self.now:
            self._add(self.now, now, self.bucket)
            self.now = now

    def stepped(self, now: float, step: int, stall: float = 0.0) -> None:
        """The time since the last event computed `step`, except `stall` of it."""
        begun = self.now
        stall = min(max(stall, 0.0), max(now - begun, 0.0))
        self.bucket = Bucket.STALL
        self.until(begun + stall)
        if now > self.now:
            self.pending.append(Interval(self.now, now, step))
        self.bucket = Bucket.USEFUL
        self.until(now)

    def committed(self, step: int) -> None:
        """Steps up to this one can no longer be lost."""
        while self.pending and self.pending[0].step <= step:
            self.pending.popleft()

    def rollback(self, step: int) -> float:
        """Training goes back to the state after `step`: what was computed since is work done twice."""
        lost = [i for i in self.pending if i.step > step]
        self.pending = deque(i for i in self.pending if i.step <= step)
        for interval in lost:
            self._add(interval.start, interval.stop, Bucket.USEFUL, -1.0)
            self._add(interval.start, interval.stop, Bucket.RECOMPUTED)
        return sum(i.stop - i.start for i in lost)

    def queued(self, seconds: float) -> None:
        """Time the job waited before this GPU was its own: put in front of the clock."""
        if seconds > 0:
            self._add(self.start - seconds, self.start, Bucket.QUEUE)
            self.start -= seconds

    @property
    def total(self) -> float:
        return self.now - self.start

    def _add(self, start: float, stop: float, bucket: Bucket, sign: float = 1.0) -> None:
        self.totals[bucket] = self.totals.get(bucket, 0.0) + sign * (stop - start)
        while stop - self.start > CELLS * self.cell:
            self._coarsen()
        first, last = int(start // self.cell), int(stop // self.cell)
        for index in range(first, last + 1):
            share = min(stop, (index + 1) * self.cell) - max(start, index * self.cell)
            if share > 0:
                cell = self.cells.setdefault(index, {})
                cell[bucket] = cell.get(bucket, 0.0) + sign * share

    def _coarsen(self) -> None:
        wider: dict[int, dict[Bucket, float]] = {}
        for index, cell in self.cells.items():
            into = wider.setdefault(index // 2, {})
            for bucket, seconds in cell.items():
                into[bucket] = into.get(bucket, 0.0) + seconds
        self.cells, self.cell = wider, self.cell * 2


@dataclass(frozen=True, slots=True)
class Account:
    """What one GPU reports: totals and a timeline relative to a clock everybody shares."""

    gpu: str
    begun: float
    totals: dict[str, float]
    timeline: tuple[tuple[float, float, str], ...]


def account(ledger: Ledger, gpu: str, wall_minus_monotonic: float) -> Account:
    spans: list[tuple[float, float, str]] = []
    for index in sorted(ledger.cells):
        at = index * ledger.cell + wall_minus_monotonic
        for bucket, seconds in ledger.cells[index].items():
            if seconds > 1e-9:
                spans.append((at, seconds, bucket.value))
                at += seconds
    totals = {b.value: ledger.totals.get(b, 0.0) for b in Bucket}
    return Account(gpu, ledger.start + wall_minus_monotonic, totals, tuple(spans))


def merged(accounts: list[Account]) -> dict[str, float]:
    """GPU-seconds of a job by bucket."""
    return {b.value: sum(a.totals.get(b.value, 0.0) for a in accounts) for b in Bucket}


def goodput(totals: dict[str, float]) -> float:
    """The share of GPU time that was useful."""
    spent = sum(totals.values())
    return totals.get(Bucket.USEFUL, 0.0) / spent if spent > 0 else 0.0
