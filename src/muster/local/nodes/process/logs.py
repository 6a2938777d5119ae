"""Container logs: what a process printed, line by line with the time, kept for `kubectl logs`.

One file per run of a container; the current and the previous run can be read. A file that grows past a
limit is cut once, as a kubelet rotates: the older half of what is kept moves to a second file, and what is
older still is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from muster.local.clock import Clock, micro_stamp

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 14
_LARGEST = 10 << 20


@dataclass(slots=True)
class Log:
    """The output of one run of a container."""

    path: Path
    clock: Clock
    closed: bool = False
    _size: int = 0
    _generation: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def rotated(self) -> Path:
        return self.path.with_name(self.path.name + ".1")

    async def pump(self, output: asyncio.StreamReader) -> None:
        """Keep what comes until there is no more."""
        rest = b""
        while chunk := await output.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            while len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest[:_LONGEST_LINE]], rest[_LONGEST_LINE:]
            self.write(lines)
        if rest:
            self.write([rest])
        self.close()

    def write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        prefix = micro_stamp(self.clock.now()).encode() + b" "
        data = b"".join(prefix + line + b"\n" for line in lines)
        if self._size + len(data) > _LARGEST and self._size:
            self.path.replace(self.rotated)
            self._size = 0
            self._generation += 1
        with self.path.open("ab") as file:
            file.write(data)
        self._size += len(data)
        self._tell()

    def close(self) -> None:
        self.closed = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def stored(self) -> Iterator[bytes]:
        """The lines kept so far, oldest first, with their times."""
        for path in (self.rotated, self.path):
            if path.exists():
                with path.open("rb") as file:
                    yield from file

    async def read(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """Lines, with the time in front if asked for: the last `tail` of them, those from `since`, then new
        ones.
        """
        reached, generation = self._size, self._generation
        for line in _last(self.stored(), tail):
            if since is None or _time(line) >= since:
                yield _shown(line, timestamps)
        while follow:
            news, closed = self._news, self.closed
            start = reached if generation == self._generation else 0
            reached, generation = self._size, self._generation
            for line in self._from(start):
                yield _shown(line, timestamps)
            if closed:
                return
            if self._size == reached and generation == self._generation and not self.closed:
                await news.wait()

    def _from(self, start: int) -> list[bytes]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(start)
            return file.readlines()


def _last(lines: Iterator[bytes], tail: int | None) -> Iterator[bytes]:
    return iter(list(lines) if tail is None else deque(lines, maxlen=tail))


def _time(line: bytes) -> float:
    return datetime.fromisoformat(line.partition(b" ")[0].decode()).timestamp()


def _shown(line: bytes, timestamps: bool) -> bytes:
    return line if timestamps else line.partition(b" ")[2]
