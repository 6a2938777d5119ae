"""Keeps a cache equal to the server: list or watch-list first, then watch, and again whatever breaks.

A watch that is cut goes on from the last version told. Only where the server no longer knows that version
(410), or keeps failing on it, is everything read again. Missing rights, a missing kind and an unreachable
server are states to be shown and waited out, not errors to die of.
"""

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from muster.kube.backoff import Backoff
from muster.kube.cache import Cache, Key, key_of
from muster.kube.errors import ApiError, KubeError, LostError, UnsentError
from muster.kube.requests import PAGE, Client
from muster.kube.watch import QUIET, Asked, Bookmark, Broken, Kind, Stored, Told, told, watch

T = TypeVar("T", bound=Stored)

STUBBORN = 3  # failures in a row on one version, after which everything is read again
STEADY = 5.0  # seconds a watch must last for its end to be nothing to worry about
SHORTEST, LONGEST = 240, 480  # seconds a watch is asked to last, at random so that not all end at once
SETTLING = 3.0  # seconds without news after which a server that knows watch-lists would have told everything
NO_WATCH_LIST = frozenset({400, 405, 422})  # what servers without it answer, by their age
log = logging.getLogger("muster.kube")


class State(Enum):
    """How a feed is doing."""

    STARTING = "starting"
    LIVE = "live"
    ABSENT = "absent"  # the server has no such kind
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Health:
    """How a feed is doing, and in words why."""

    state: State = State.STARTING
    message: str = ""


@dataclass(slots=True)
class Feed(Generic[T]):
    """One resource, or a selection of it, fed into one cache for as long as `run` runs."""

    client: Client
    path: str
    kind: type[T]
    cache: Cache[T]
    labels: str = ""
    fields: str = ""
    page: int = PAGE
    watch_list: bool = True
    quiet: float = QUIET
    settling: float = SETTLING
    absent_pause: float = 300.0
    backoff: Backoff = field(default_factory=lambda: Backoff(0.05, 30.0))
    health: Health = Health()
    version: str = ""
    lists: int = 0  # how often everything was read
    _moved: bool = False
    _failures: int = 0
    _recheck: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Feed the cache until cancelled."""
        while True:
            pause = await self._round()
            if pause:
                await self._wait(pause)

    def recheck(self) -> None:
        """Try again now, for instance because the kind was just defined."""
        self._recheck.set()

    async def _round(self) -> float:
        """Read everything if need be and watch until that ends; how long to wait before the next round."""
        started, self._moved = time.monotonic(), False
        error: KubeError | None = None
        try:
            if not self.version and not self.watch_list:
                await self._list()
            await self._follow()
        except KubeError as raised:
            error = raised
        if self._moved or time.monotonic() - started >= min(STEADY, self.quiet):
            self._failures = 0
            if error is None:
                return 0.0
        return self._failed(error or LostError("the watch ended at once"))

    def _failed(self, error: KubeError) -> float:
        if isinstance(error, ApiError) and error.is_missing:
            self.version = ""
            self.cache.replace([])
            self._say(State.ABSENT, f"{self.path}: the server does not know it")
            return self.absent_pause
        self._failures += 1
        asked = None
        if self._failures >= STUBBORN and not self.version and not isinstance(error, UnsentError):
            self.watch_list = False  # it may know watch-lists, but here they do not come through
        if isinstance(error, ApiError):
            asked = error.retry_after
            if error.is_gone or (self._failures >= STUBBORN and not error.is_throttled):
                self.version = ""
        if self._failures >= STUBBORN or not self.cache.synced.is_set():
            self._say(State.FAILING, f"{self.path}: {error}")
        return self.backoff.pause(self._failures, asked)

    def _say(self, state: State, message: str = "") -> None:
        if self.health == (health := Health(state, message)):
            return
        if state in {State.ABSENT, State.LIVE}:
            log.info("%s: %s", self.path, state.value)
        else:
            log.warning("%s", message)
        self.health = health

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._recheck.wait()
        except TimeoutError:
            return
        self._recheck.clear()

    async def _list(self) -> None:
        try:
            await self._read(self.page)
        except ApiError as error:
            if not error.is_gone:
                raise
            await self._read(0)  # the pages took longer than their version lives: all of it at once

    async def _read(self, limit: int) -> None:
        page = await self.client.list(self.path, self.kind, labels=self.labels, fields=self.fields, limit=limit)
        self._replace(page.items, page.broken, page.version)

    def _replace(self, objects: Iterable[T], broken: dict[Key, str], version: str) -> None:
        self.cache.replace(objects, broken)
        self.version, self._moved = version, True
        self.lists += 1
        self._say(State.LIVE)

    async def _follow(self) -> None:
        """Watch from the version we have; without one, take everything from the watch first."""
        initial = None if self.version else Initial[T]()
        try:
            await self._hear(initial)
        except ApiError as error:
            if initial is None or error.code not in NO_WATCH_LIST:
                raise
            self._without_watch_list()

    async def _hear(self, initial: "Initial[T] | None") -> None:
        seconds = random.randint(SHORTEST, LONGEST)  # noqa: S311 - jitter, not a secret
        asked = Asked(self.path, self.labels, self.fields, self.version, seconds)
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(self.settling if initial is not None else None)
        try:
            async with limit, aclosing(watch(self.client.transport, asked, self.quiet)) as batches:
                async for batch in batches:
                    if initial is None:
                        self._say(State.LIVE)
                    for line in batch:
                        initial = self._take(told(line, self.kind), initial)
                    limit.reschedule(loop.time() + self.settling if initial is not None else None)
        except TimeoutError:
            if not limit.expired():
                raise
            self._without_watch_list()

    def _take(self, what: Told[T], initial: "Initial[T] | None") -> "Initial[T] | None":
        """Take one thing told; returns what is still being collected, None once everything was told."""
        if initial is not None:
            initial.take(what)
            if not (isinstance(what, Bookmark) and what.initial):
                return initial
            self._replace(initial.objects.values(), initial.broken, what.version)
            return None
        if not isinstance(what, Bookmark):
            self.cache.apply(what)
        self.version, self._moved = what.version, True
        return None

    def _without_watch_list(self) -> None:
        """The server does not know watch-lists: from now on list first."""
        self.watch_list, self._moved = False, True


@dataclass(slots=True)
class Initial(Generic[T]):
    """Everything there is, as a watch-list tells it before its bookmark."""

    objects: dict[Key, T] = field(default_factory=dict)
    broken: dict[Key, str] = field(default_factory=dict)

    def take(self, what: Told[T]) -> None:
        """Add, change or drop one object."""
        if isinstance(what, Bookmark):
            return
        key = key_of(what.metadata if isinstance(what, Broken) else what.object.metadata)
        self.objects.pop(key, None)
        self.broken.pop(key, None)
        if what.kind is Kind.DELETED:
            return
        if isinstance(what, Broken):
            self.broken[key] = what.message
        else:
            self.objects[key] = what.object
