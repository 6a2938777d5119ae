"""Snapshot memory an agent owns: anonymous files passed by descriptor, which outlive the worker that filled
them.

Not /dev/shm, which is 64 MiB in a pod. Buffers the worker writes to are granted one at a time; shards
received from other agents take buffers of their own. Every sealed shard carries the checksums of its blocks.
"""

import contextlib
import json
import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from muster.elastic.layout import Box, Piece
from muster.elastic.protocol import Shard
from muster.elastic.slots import SlotError, Slots, State

BLOCK = 8 << 20


@dataclass(slots=True)
class Holding:
    """One sealed shard: where its bytes are, where the description begins, and the blocks' checksums."""

    shard: Shard
    slot: int
    data: int
    manifest: int
    sums: tuple[int, ...]


@dataclass(slots=True)
class Buffer:
    fd: int
    memory: mmap.mmap
    lasting: bool  # kept for reuse by the worker; others are given back to the system when free


@dataclass(slots=True)
class Arena:
    """All buffers of one agent. Its methods may be called from any thread."""

    slots: Slots = field(default_factory=Slots)
    buffers: dict[int, Buffer] = field(default_factory=dict)
    holdings: dict[Shard, Holding] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    count: int = 0

    def allocate(self, size: int, lasting: bool) -> int:
        with self.lock:
            self.count += 1
            fd = os.memfd_create(f"muster-{self.count}", os.MFD_CLOEXEC)
            try:
                os.ftruncate(fd, max(size, 1))
                memory = mmap.mmap(fd, max(size, 1))
            except BaseException:
                os.close(fd)
                raise
            self.slots.add(self.count, max(size, 1))
            self.buffers[self.count] = Buffer(fd, memory, lasting)
            return self.count

    def grant(self, size: int, lasting: bool) -> int | None:
        """A buffer for the worker to fill: one of its own if one is free, a passing one otherwise."""
        with self.lock:
            fit = {i for i, b in self.buffers.items() if b.lasting and self.slots.slots[i].size >= size}
            slot = self.slots.grant(frozenset(fit)) if lasting else None
            if slot is None and not lasting:
                slot = self.slots.grant(frozenset({self.allocate(size, lasting=False)}))
            return slot.id if slot else None

    def seal(self, slot: int, shard: Shard, data: int, manifest: int, sums: Sequence[int]) -> None:
        with self.lock:
            if shard in self.holdings:
                self._reclaim(slot)
                return
            self.slots.seal(slot, shard)
            self.holdings[shard] = Holding(shard, slot, data, manifest, tuple(sums))

    def abandon(self, slot: int) -> None:
        with self.lock:
            if slot in self.slots.slots and self.slots.slots[slot].state is State.FILLING:
                self._reclaim(slot)

    def _reclaim(self, slot: int) -> None:
        self.slots.abandon(slot)
        self._return(slot)

    def drop(self, shard: Shard) -> None:
        with self.lock:
            holding = self.holdings.pop(shard, None)
            if holding and self.slots.drop(holding.slot):
                self._return(holding.slot)

    @contextmanager
    def reading(self, shard: Shard) -> Iterator[tuple[Holding, memoryview]]:
        with self.lock:
            holding = self.holdings.get(shard)
            if holding is None:
                raise SlotError(f"{shard} is not held here")
            self.slots.read(holding.slot)
            view = memoryview(self.buffers[holding.slot].memory)
        try:
            yield holding, view
        finally:
            view.release()
            with self.lock:
                if self.slots.done(holding.slot):
                    self._return(holding.slot)

    def writing(self, slot: int) -> memoryview:
        return memoryview(self.buffers[slot].memory)

    def retire(self) -> None:
        """The worker's own buffers no longer fit or are no longer mapped: give them back when they are
        free.
        """
        with self.lock:
            for i, buffer in list(self.buffers.items()):
                buffer.lasting = False
                if self.slots.slots[i].state is State.FREE:
                    self._return(i)

    def _return(self, slot: int) -> None:
        buffer = self.buffers[slot]
        if buffer.lasting:
            return
        with contextlib.suppress(BufferError):  # a view is still being let go; the pages go with the last one
            buffer.memory.close()
        os.close(buffer.fd)
        del self.buffers[slot], self.slots.slots[slot]

    def held(self) -> list[Shard]:
        with self.lock:
            return list(self.holdings)

    def bytes(self) -> int:
        with self.lock:
            return sum(s.size for s in self.slots.slots.values())


_SUMMING = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), "sums")


def sums_of(view: memoryview) -> tuple[int, ...]:
    """The checksum of every block; large shards are shared out among threads, which need no GIL for it."""
    blocks = [view[at : at + BLOCK] for at in range(0, len(view), BLOCK)]
    return tuple(map(crc32, blocks) if len(blocks) < 4 else _SUMMING.map(crc32, blocks))


@dataclass(slots=True)
class Sums:
    """Checksums of a buffer that is still being filled from its beginning: ready soon after the last byte."""

    view: memoryview
    found: "list[Future[int]]" = field(default_factory=list)

    def landed(self, end: int) -> None:
        while (len(self.found) + 1) * BLOCK <= end:
            self._add(BLOCK * (len(self.found) + 1))

    def finish(self, end: int) -> tuple[int, ...]:
        self.landed(end)
        if len(self.found) * BLOCK < end:
            self._add(end)
        sums = tuple(f.result() for f in self.found)
        self.view.release()
        return sums

    def _add(self, end: int) -> None:
        block = self.view[BLOCK * len(self.found) : end]
        self.found.append(_SUMMING.submit(_released_sum, block))


def _released_sum(block: memoryview) -> int:
    with block:
        return crc32(block)


def manifest_of(view: memoryview, holding: Holding) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(bytes(view[holding.data : holding.data + holding.manifest]))
    return data


def pieces_of(manifest: dict[str, Any]) -> tuple[Piece, ...]:
    return tuple(
        Piece(name, dtype, size, tuple(shape), Box(tuple(offset), tuple(extent)), at)
        for name, dtype, size, shape, offset, extent, at in manifest["pieces"]
    )


def described(pieces: Sequence[Piece], **more: Any) -> bytes:
    """A shard's own description, stored behind its bytes."""
    rows = [[p.name, p.dtype, p.itemsize, list(p.shape), list(p.box.offset), list(p.box.size), p.at] for p in pieces]
    return json.dumps({"pieces": rows} | more).encode()
