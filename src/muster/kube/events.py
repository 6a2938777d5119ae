"""Events: what `kubectl describe` shows. Told at once, written later, and never in anybody's way.

`tell` only notes it down. `run` writes what was noted: the first of its kind as an event of its own,
repetitions as the count of its series, at a bounded rate. When more is told than may be written, the newest
are dropped, and counted: events are a courtesy, binding is not.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from muster.kube.errors import ApiError, KubeError
from muster.kube.paths import EVENTS
from muster.kube.requests import Client

LONGEST_NOTE = 1024  # bytes, which the API enforces
FORGET_AFTER = 360.0  # seconds without repetition after which the same thing is news
log = logging.getLogger("muster.kube")


@dataclass(frozen=True, slots=True)
class Subject:
    """The object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth saying about an object; the same said again is one note with a count."""

    subject: Subject
    reason: str
    action: str
    text: str
    warning: bool = False


@dataclass(slots=True)
class _Series:
    """How often a note was told, and the event that says so, once it is written."""

    first: datetime
    last: datetime
    last_seen: float
    count: int = 1
    name: str = ""


@dataclass(slots=True)
class Events:
    """Takes notes and writes them as events."""

    client: Client
    controller: str
    instance: str
    rate: float = 20.0  # written per second
    series_pause: float = 10.0  # seconds between two writes of one series
    most: int = 4096  # notes kept
    dropped: int = 0
    clock: Callable[[], float] = time.monotonic
    _series: dict[Note, _Series] = field(default_factory=dict)
    _due: dict[Note, float] = field(default_factory=dict)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, note: Note) -> None:
        """Note it down; never waits and never fails."""
        now, wall = self.clock(), datetime.now(UTC)
        series = self._series.get(note)
        if series is not None and self._is_current(note, series, now):
            series.count += 1
            series.last, series.last_seen = wall, now
            self._due.setdefault(note, now + self.series_pause)
        elif series is None and len(self._series) >= self.most and not self._forget(now):
            self.dropped += 1
            return
        else:
            self._series[note] = _Series(wall, wall, now)
            self._due[note] = now
        self._told.set()

    async def run(self) -> None:
        """Write what is told until cancelled."""
        while True:
            note = self._take_due()
            if note is None:
                await self._wait()
                continue
            try:
                await self._write(note, self._series[note])
            except KubeError as error:
                log.debug("event %s of %s: %s", note.reason, note.subject.name, error)
            await asyncio.sleep(1 / self.rate)

    def _is_current(self, note: Note, series: _Series, now: float) -> bool:
        return note in self._due or now - series.last_seen <= FORGET_AFTER

    def _forget(self, now: float) -> bool:
        """Make room by dropping what was not repeated for long."""
        old = [note for note, series in self._series.items() if not self._is_current(note, series, now)]
        for note in old:
            del self._series[note]
        return bool(old)

    def _take_due(self) -> Note | None:
        now = self.clock()
        note = next((note for note, due in self._due.items() if due <= now), None)
        if note is not None:
            del self._due[note]
        return note

    async def _wait(self) -> None:
        """Until something is told or due."""
        due = min(self._due.values(), default=None)
        self._told.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(0.0, due - self.clock())):
                await self._told.wait()

    async def _write(self, note: Note, series: _Series) -> None:
        if series.name and await self._counted(note, series):
            return
        name = f"{note.subject.name[:200]}.{token_hex(8)}"
        await self.client.create(EVENTS.path(_namespace(note)), self._body(note, series, name))
        series.name = name

    async def _counted(self, note: Note, series: _Series) -> bool:
        """Whether the event was still there to be counted up; the API forgets events after an hour."""
        path = EVENTS.path(_namespace(note), series.name)
        try:
            await self.client.patch(path, {"series": _series(series)})
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    def _body(self, note: Note, series: _Series, name: str) -> dict[str, Any]:
        subject = note.subject
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(note)},
            "eventTime": _micro(series.first),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
            "action": note.action,
            "reason": note.reason,
            "type": "Warning" if note.warning else "Normal",
            "note": _fitting(note.text),
            "regarding": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
        }
        if series.count > 1:
            body["series"] = _series(series)
        return body


def _series(series: _Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": _micro(series.last)}


def _namespace(note: Note) -> str:
    """Events about objects of the cluster live in `default`."""
    return note.subject.namespace or "default"


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _fitting(text: str) -> str:
    data = text.encode()
    if len(data) <= LONGEST_NOTE:
        return text
    return data[: LONGEST_NOTE - 3].decode(errors="ignore") + "..."
