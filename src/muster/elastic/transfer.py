"""Filling a worker's tensors from the shards that agents hold, whatever layout those were cut in.

The worker fetches exactly the bytes of its own boxes, a chunk at a time, straight into its tensors: beside
them it never holds more than one chunk.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import torch

from muster.elastic.arena import pieces_of
from muster.elastic.layout import Box, Fetch, Piece, by_name, cut, even, fetches, runs
from muster.elastic.peer import Peers
from muster.elastic.protocol import Restore, Shard, decode
from muster.elastic.state import Entry
from muster.elastic.wire import WireError

CHUNK = 8 << 20
MOST_RANGES = 4096
PAUSE = 0.005


@dataclass(frozen=True, slots=True)
class Origin:
    """A shard and the agent that gives it out."""

    address: str
    shard: Shard


@dataclass(slots=True)
class Archive:
    """The descriptions of every part of one step: all there is to know before fetching bytes."""

    manifests: list[tuple[Origin, dict[str, Any]]]
    index: dict[str, list[tuple[Origin, Piece]]] = field(init=False)

    def __post_init__(self) -> None:
        self.index = by_name((origin, pieces_of(m)) for origin, m in self.manifests)

    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        return {name: (held[0][1].dtype, held[0][1].shape) for name, held in self.index.items()}

    @property
    def first(self) -> dict[str, Any]:
        return self.manifests[0][1]


def located(restore: Restore, epoch: int, peers: Peers, stop: Callable[[], None]) -> list[Origin]:
    """One holder for every part of the step to restore."""
    if restore.shard is None:
        of = len(restore.holders)
        return [Origin(a, Shard(restore.step, epoch, i, of, True)) for i, (_, a) in enumerate(restore.holders)]
    found: dict[int, Origin] = {}
    wanted = restore.shard
    for _, address in restore.holders:
        stop()
        try:
            held = [decode(Shard, s) for s in peers.call(address, {"op": "held"})["shards"]]
        except WireError:
            continue
        for shard in held:
            same = (shard.step, shard.epoch, shard.of, shard.live) == (
                wanted.step,
                wanted.epoch,
                wanted.of,
                wanted.live,
            )
            if same:
                found.setdefault(shard.index, Origin(address, shard))
    if len(found) < wanted.of:
        raise WireError(f"step {wanted.step}: {wanted.of - len(found)} of {wanted.of} parts have no holder left")
    return [found[i] for i in range(wanted.of)]


def archive(origins: list[Origin], peers: Peers, stop: Callable[[], None]) -> Archive:
    return Archive([(o, _manifest(o, peers, stop)) for o in origins])


def _manifest(origin: Origin, peers: Peers, stop: Callable[[], None]) -> dict[str, Any]:
    """Survivors may still be sealing what they hand over: ask until it is there or the epoch is void."""
    while True:
        stop()
        try:
            answer = peers.call(origin.address, {"op": "manifest", "shard": asdict(origin.shard)})
        except WireError as error:
            if not origin.shard.live or "not held here" not in str(error):
                raise
            time.sleep(PAUSE)
        else:
            return dict(answer["manifest"])


def tiles(box: Box, itemsize: int, limit: int) -> Iterator[Box]:
    """A box in boxes of at most `limit` bytes, cut along the first dimensions."""
    if box.count * itemsize <= limit or not box.size:
        yield box
        return
    dim = next(d for d, s in enumerate(box.size) if s > 1)
    row = prod(box.size) // box.size[dim] * itemsize
    parts = min(box.size[dim], -(-box.size[dim] * row // limit))
    for i in range(parts):
        yield from tiles(cut(box, dim, even(box.size[dim], parts, i)), itemsize, limit)


@dataclass(slots=True)
class Batch:
    """Reads from one shard that travel together."""

    origin: Origin
    ranges: list[tuple[int, int]] = field(default_factory=list)
    into: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class Filling:
    """Fetches for many tensors, gathered per source and carried out chunk by chunk."""

    peers: Peers
    stop: Callable[[], None]
    buffer: bytearray = field(default_factory=lambda: bytearray(CHUNK))
    open: dict[Origin, Batch] = field(default_factory=dict)
    total: int = 0

    def add(self, entry: Entry, fetch: Fetch[Origin]) -> None:
        for box in tiles(fetch.box, fetch.piece.itemsize, CHUNK):
            size = box.count * fetch.piece.itemsize
            batch = self.open.setdefault(fetch.source, Batch(fetch.source))
            spans = list(runs(fetch.piece, box))
            if batch.size + size > CHUNK or len(batch.ranges) + len(spans) > MOST_RANGES:
                self._carry_out(batch)
                batch = self.open[fetch.source] = Batch(fetch.source)
            batch.ranges.extend(spans)
            batch.into.append((entry.part(box), size))
            batch.size += size

    def finish(self) -> int:
        for batch in self.open.values():
            self._carry_out(batch)
        self.open.clear()
        return self.total

    def _carry_out(self, batch: Batch) -> None:
        if not batch.size:
            return
        self.stop()
        if batch.size > len(self.buffer):
            self.buffer = bytearray(batch.size)
        head = {"op": "read", "shard": asdict(batch.origin.shard), "ranges": batch.ranges}
        self.peers.fetch(batch.origin.address, head, memoryview(self.buffer)[: batch.size])
        at = 0
        for view, size in batch.into:
            data = torch.frombuffer(self.buffer, dtype=view.dtype, count=view.numel(), offset=at)
            view.copy_(data.view(view.shape))
            at += size
        self.total += batch.size


def fill(entries: list[Entry], found: Archive, peers: Peers, stop: Callable[[], None]) -> int:
    """Fill every entry; returns the bytes that were fetched."""
    work = Filling(peers, stop)
    for entry in entries:
        if entry.box.count:
            for fetch in fetches(entry.piece(entry.box), found.index.get(entry.name, [])):
                work.add(entry, fetch)
    return work.finish()
