"""Sources of samples whose position moves only when a step is committed.

Map-style datasets follow one permutation and one cursor. Sources that can only be read in sequence are
shards, dealt out among the members; loaders that keep their own state are a fixed number of logical streams,
which move from member to member whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, default_collate

from muster.elastic.layout import even
from muster.elastic.order import Cursor, Permutation, Window, leases, windows

Collate = Callable[[list[Any]], Any]


class DataChanged(ValueError):
    """The data is not what it was when the snapshot was taken."""


@dataclass(frozen=True, slots=True)
class Item:
    """One member's part of one step. `total` is None when only all members together know it."""

    batch: Any
    samples: int
    total: int | None
    after: Any
    parts: tuple[Any, ...] = ()


class Feed(Protocol):
    """What `attach` needs of a source. `shared` sources have one position for all members."""

    shared: bool

    def open(self, rank: int, world: int, virtual: int) -> None: ...
    def next(self) -> Item | None: ...
    def commit(self, item: Item) -> None: ...
    def position(self) -> dict[str, Any]: ...
    def seek(self, positions: list[dict[str, Any]]) -> None: ...
    def template(self) -> Any: ...


@dataclass(slots=True)
class Data:
    """A map-style dataset: every sample exactly once per pass, for any history of sizes.

    `batch` is the number of samples of a step over all members together.
    """

    dataset: Any
    batch: int
    passes: int = 1
    seed: int = 0
    collate: Collate = default_collate
    workers: int = 0
    shared: bool = field(default=True, init=False)
    cursor: Cursor = field(default_factory=Cursor, init=False)
    _items: Iterator[Item] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not hasattr(self.dataset, "__getitem__") or not hasattr(self.dataset, "__len__"):
            raise TypeError("Data needs a map-style dataset; use Shards or Streams for what can only be iterated")
        if not len(self.dataset) or self.batch < 1:
            raise ValueError(f"nothing to train on: {len(self.dataset)} samples in batches of {self.batch}")

    def open(self, rank: int, world: int, virtual: int) -> None:
        self._items = self._iterate(rank, world, virtual)

    def next(self) -> Item | None:
        assert self._items is not None
        return next(self._items, None)

    def commit(self, item: Item) -> None:
        self.cursor = item.after

    def position(self) -> dict[str, Any]:
        return {"size": len(self.dataset), "turn": self.cursor.turn, "at": self.cursor.position}

    def seek(self, positions: list[dict[str, Any]]) -> None:
        saved = positions[0]
        if saved["size"] != len(self.dataset):
            raise DataChanged(
                f"the dataset has {len(self.dataset)} samples, the snapshot was taken with {saved['size']}: restore"
                " the data as it was, or start anew without the snapshot"
            )
        self.cursor = Cursor(saved["turn"], saved["at"])

    def template(self) -> Any:
        return self.collate([self.dataset[0]])

    def _iterate(self, rank: int, world: int, virtual: int) -> Iterator[Item]:
        loader = DataLoader(
            self.dataset,
            batch_sampler=_Lists(self, self.cursor, rank, world, virtual),
            num_workers=self.workers,
            collate_fn=self.collate,
            generator=torch.Generator(),
        )
        batches = iter(loader)
        for step in windows(self.cursor, len(self.dataset), self.batch, self.passes):
            parts = _parts(step, rank, world, virtual)
            got = tuple(next(batches) for _ in parts)
            yield Item(got[0] if got else None, sum(map(len, parts)), len(step), step.after, got)


def _parts(step: Window, rank: int, world: int, virtual: int) -> list[range]:
    return virtual_parts(step, rank, world, virtual) if virtual else [step.part(world, rank)]


def virtual_parts(step: Window, rank: int, world: int, virtual: int) -> list[range]:
    """This member's run of the window's fixed micro-batches."""
    first, count = even(virtual, world, rank)
    return [step.part(virtual, v) for v in range(first, first + count)]


@dataclass(frozen=True, slots=True)
class _Lists:
    """A batch sampler: the indices of one member's parts, made as they are asked for."""

    data: Data
    cursor: Cursor
    rank: int
    world: int
    virtual: int

    def __iter__(self) -> Iterator[list[int]]:
        """A part without samples borrows one, whose weight is zero: its member still takes part."""
        data, size = self.data, len(self.data.dataset)
        turn, order = -1, Permutation(size, data.seed, 0)
        for step in windows(self.cursor, size, data.batch, data.passes):
            if step.turn != turn:
                turn, order = step.turn, Permutation(size, data.seed, step.turn)
            for part in _parts(step, self.rank, self.world, self.virtual):
                yield [order(i) for i in (part or range(step.start, step.start + 1))]


def _refuse(virtual: int) -> None:
    if virtual:
        raise ValueError("virtual micro-batches need a map-style dataset: use Data")


@dataclass(slots=True)
class Shards:
    """Sources read in sequence, such as files: `read(name, offset)` yields samples from that offset on.

    Each member leases unfinished shards; what was not read of one when its member leaves is read by another.
    """

    names: list[str]
    read: Callable[[str, int], Iterable[Any]]
    batch: int  # per member and step
    collate: Collate = default_collate
    shared: bool = field(default=False, init=False)
    done: dict[int, int | None] = field(default_factory=dict, init=False)
    _mine: list[int] = field(default_factory=list, init=False)
    _open: tuple[int, int, Iterator[Any]] | None = field(default=None, init=False)

    def open(self, rank: int, world: int, virtual: int) -> None:
        _refuse(virtual)
        self._mine = leases(self.done, len(self.names), world)[rank]
        self._open = None

    def next(self) -> Item | None:
        samples: list[Any] = []
        after: dict[int, int | None] = {}
        while len(samples) < self.batch and (shard := self._current()) is not None:
            number, offset, reader = shard
            sample = next(reader, self)
            if sample is self:
                after[number] = None
                self._mine.pop(0)
                self._open = None
                continue
            samples.append(sample)
            after[number] = offset + 1
            self._open = (number, offset + 1, reader)
        batch = self.collate(samples) if samples else None
        return Item(batch, len(samples), None, after, (batch,))

    def _current(self) -> tuple[int, int, Iterator[Any]] | None:
        if self._open is None and self._mine:
            number = self._mine[0]
            offset = self.done.get(number) or 0
            self._open = (number, offset, iter(self.read(self.names[number], offset)))
        return self._open

    def commit(self, item: Item) -> None:
        self.done.update(item.after)

    def template(self) -> Any:
        return self.collate([next(iter(self.read(name, 0))) for name in self.names[:1]])

    def position(self) -> dict[str, Any]:
        return {"names": self.names, "done": {str(k): v for k, v in self.done.items()}}

    def seek(self, positions: list[dict[str, Any]]) -> None:
        if any(p["names"] != self.names for p in positions):
            raise DataChanged("the list of shards is not the one the snapshot was taken with")
        self.done = furthest(positions)


def furthest(positions: list[dict[str, Any]]) -> dict[int, int | None]:
    """Every member knows its own shards best, and those are further along than anybody else's memory of
    them.
    """
    found: dict[int, int | None] = {}
    for position in positions:
        for key, offset in position["done"].items():
            number = int(key)
            known = found.get(number, 0)
            found[number] = None if offset is None or known is None else max(offset, known)
    return found


@dataclass(slots=True)
class Streams:
    """Loaders with a state of their own: `make(i)` builds stream i of `count`, which has state_dict and
    yields batches.

    A stream is never split: growing beyond `count` members leaves the others without data.
    """

    make: Callable[[int], Any]
    count: int
    size: Callable[[Any], int] = len
    shared: bool = field(default=False, init=False)
    states: dict[int, Any] = field(default_factory=dict, init=False)
    moves: dict[int, int] = field(default_factory=dict, init=False)
    _live: dict[int, tuple[Any, Iterator[Any]]] = field(default_factory=dict, init=False)
    _turn: list[int] = field(default_factory=list, init=False)

    def open(self, rank: int, world: int, virtual: int) -> None:
        _refuse(virtual)
        self._turn = [i for i in range(rank, self.count, world) if self.states.get(i, 0) is not None]
        self._live = {}

    def next(self) -> Item | None:
        while self._turn:
            number = self._turn[0]
            batch = next(self._stream(number)[1], self)
            if batch is self:
                self._turn.pop(0)
                self.states[number], self.moves[number] = None, self.moves.get(number, 0) + 1
                continue
            self._turn.append(self._turn.pop(0))
            state = self._stream(number)[0].state_dict()
            return Item(batch, self.size(batch), None, (number, state), (batch,))
        return Item(None, 0, None, None, (None,))

    def _stream(self, number: int) -> tuple[Any, Iterator[Any]]:
        if number not in self._live:
            loader = self.make(number)
            if number in self.states:
                loader.load_state_dict(self.states[number])
            self._live[number] = (loader, iter(loader))
        return self._live[number]

    def commit(self, item: Item) -> None:
        if item.after is not None:
            number, state = item.after
            self.states[number], self.moves[number] = state, self.moves.get(number, 0) + 1

    def template(self) -> Any:
        return next(iter(self.make(0)))

    def position(self) -> dict[str, Any]:
        return {"count": self.count, "states": {str(k): [self.moves[k], v] for k, v in self.states.items()}}

    def seek(self, positions: list[dict[str, Any]]) -> None:
        if any(p["count"] != self.count for p in positions):
            raise DataChanged(f"the snapshot has {positions[0]['count']} streams, this run {self.count}")
        self.states, self.moves = {}, {}
        for position in positions:
            for key, (moves, state) in position["states"].items():
                if moves > self.moves.get(int(key), 0):
                    self.states[int(key)], self.moves[int(key)] = state, moves
