"""Time for controllers and nodes: the machine's in a running cluster, the test's own in a test.

Nothing in the local cluster reads the clock or sleeps by itself. It asks a Clock, so that a test can let
an hour of five thousand nodes pass in a second, and two runs with one seed are the same run.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Alarm(Protocol):
    """A call that has not happened yet."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Seconds since 1970, and a way to be called back."""

    def now(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm: ...


class SystemClock:
    """The machine's time, on the running event loop."""

    def now(self) -> float:
        return time.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), callback)


@dataclass(slots=True)
class _Due:
    callback: Callable[[], None] | None

    def cancel(self) -> None:
        self.callback = None


@dataclass(slots=True)
class VirtualClock:
    """A clock that moves when it is told to."""

    time: float = 1_700_000_000.0
    _heap: list[tuple[float, int, _Due]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def now(self) -> float:
        return self.time

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        due = _Due(callback)
        heapq.heappush(self._heap, (max(when, self.time), next(self._order), due))
        return due

    def next_at(self) -> float | None:
        """When the next call is due, if any is."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def step(self, until: float) -> bool:
        """Move to the next call due by `until` and make it, or to `until` and answer False."""
        when = self.next_at()
        if when is None or when > until:
            self.time = max(self.time, until)
            return False
        self.time = when
        due = heapq.heappop(self._heap)[2]
        if due.callback:
            due.callback()
        return True


@dataclass(slots=True)
class Timers(Generic[T]):
    """One heap for any number of timed things, on one alarm of the clock."""

    clock: Clock
    fire: Callable[[list[T]], None]
    _heap: list[tuple[float, int, T]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _alarm: Alarm | None = None
    _alarm_at: float = 0.0

    def add(self, when: float, item: T) -> None:
        """Have `item` fired at `when` or soon after, together with all that is due by then."""
        heapq.heappush(self._heap, (when, next(self._order), item))
        if self._alarm is None or when < self._alarm_at:
            self._set(when)

    def stop(self) -> None:
        self._heap.clear()
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None

    def _set(self, when: float) -> None:
        if self._alarm:
            self._alarm.cancel()
        self._alarm, self._alarm_at = self.clock.call_at(when, self._ring), when

    def _ring(self) -> None:
        self._alarm = None
        now, due = self.clock.now(), []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        if self._heap:
            self._set(self._heap[0][0])
        if due:
            self.fire(due)


def stamp(seconds: float) -> str:
    """A time as Kubernetes writes it in metadata and status."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(seconds: float) -> str:
    """A time as Kubernetes writes it in leases and events: with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str | None) -> float | None:
    """The time a Kubernetes object states, if it states one."""
    return datetime.fromisoformat(text).timestamp() if text else None
