"""Which bytes of which tensor live where, and how they get to where they are needed next.

A tensor is known by its name; what a process holds of it is a box. Everything about re-sharding is then
interval arithmetic: replicated, FSDP2 and tensor-parallel layouts differ only in their boxes, and any layout
turns into any other one by intersecting boxes. Pure: no torch, no bytes, only where they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Generic, TypeVar
from zlib import crc32

S = TypeVar("S")


class Uncovered(ValueError):
    """The sources together do not hold what is wanted."""


@dataclass(frozen=True, slots=True, order=True)
class Box:
    offset: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.size)

    @property
    def end(self) -> tuple[int, ...]:
        return tuple(o + s for o, s in zip(self.offset, self.size, strict=True))


@dataclass(frozen=True, slots=True)
class Piece:
    """One box of one tensor, stored row-major from byte `at` of a shard."""

    name: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    box: Box
    at: int = 0

    @property
    def nbytes(self) -> int:
        return self.box.count * self.itemsize


@dataclass(frozen=True, slots=True)
class Fetch(Generic[S]):
    """Take `box` of a tensor from `source`, which stores `piece`."""

    source: S
    piece: Piece
    box: Box


def whole(shape: Sequence[int]) -> Box:
    return Box((0,) * len(shape), tuple(shape))


def chunk(length: int, parts: int, index: int) -> tuple[int, int]:
    """Offset and size of one chunk as torch cuts it: equal ceilings, a short or empty rest."""
    each = -(-length // parts)
    start = min(each * index, length)
    return start, min(each, length - start)


def even(length: int, parts: int, index: int) -> tuple[int, int]:
    """Offset and size of one part when parts may differ by at most one."""
    base, rest = divmod(length, parts)
    return base * index + min(index, rest), base + (index < rest)


def cut(box: Box, dim: int, part: tuple[int, int]) -> Box:
    start, size = part
    offset, sizes = list(box.offset), list(box.size)
    offset[dim] += start
    sizes[dim] = size
    return Box(tuple(offset), tuple(sizes))


def sharded(shape: Sequence[int], cuts: Iterable[tuple[int, int, int]]) -> Box:
    """The box left after cutting dimension `dim` into `parts` and keeping `index`, cut after cut."""
    box = whole(shape)
    for dim, parts, index in cuts:
        box = cut(box, dim, chunk(box.size[dim], parts, index))
    return box


def owned(name: str, box: Box, index: int, copies: int) -> Box | None:
    """What replica `index` of `copies` saves of a box that all of them hold: each byte is saved once."""
    if copies == 1:
        return box if box.count else None
    if box.size and box.size[0] >= copies:
        mine = cut(box, 0, even(box.size[0], copies, index))
        return mine if mine.count else None
    return box if box.count and crc32(name.encode()) % copies == index else None


def intersection(a: Box, b: Box) -> Box | None:
    offset = tuple(map(max, a.offset, b.offset))
    size = tuple(min(x, y) - o for x, y, o in zip(a.end, b.end, offset, strict=True))
    return None if any(s <= 0 for s in size) else Box(offset, size)


def without(box: Box, hole: Box) -> Iterator[Box]:
    """The rest of a box when `hole`, which lies inside it, is taken out: at most two boxes per dimension."""
    rest = box
    for dim in range(len(box.size)):
        before = hole.offset[dim] - rest.offset[dim]
        after = rest.end[dim] - hole.end[dim]
        if before:
            yield cut(rest, dim, (0, before))
        if after:
            yield cut(rest, dim, (rest.size[dim] - after, after))
        rest = cut(rest, dim, (before, hole.size[dim]))


def packed(pieces: Iterable[Piece], align: int = 64) -> tuple[tuple[Piece, ...], int]:
    """Give every piece its place in one shard, and the size of that shard."""
    placed, at = [], 0
    for p in pieces:
        placed.append(Piece(p.name, p.dtype, p.itemsize, p.shape, p.box, at))
        at += -(-p.nbytes // align) * align
    return tuple(placed), at


def by_name(shards: Iterable[tuple[S, Iterable[Piece]]]) -> dict[str, list[tuple[S, Piece]]]:
    index: dict[str, list[tuple[S, Piece]]] = {}
    for source, pieces in shards:
        for piece in pieces:
            index.setdefault(piece.name, []).append((source, piece))
    return index


def fetches(wanted: Piece, held: Sequence[tuple[S, Piece]]) -> list[Fetch[S]]:
    """Cover one wanted box by what is held, every byte exactly once; earlier holders are preferred."""
    missing, plan = [wanted.box] if wanted.box.count else [], []
    for source, piece in held:
        _check_same(wanted, piece)
        left: list[Box] = []
        for box in missing:
            common = intersection(box, piece.box)
            if common is None:
                left.append(box)
                continue
            plan.append(Fetch(source, piece, common))
            left.extend(without(box, common))
        missing = left
        if not missing:
            break
    if missing:
        raise Uncovered(f"{wanted.name}: nobody holds {missing[0]} of shape {wanted.shape}")
    return plan


def _check_same(wanted: Piece, held: Piece) -> None:
    if (wanted.shape, wanted.dtype) != (held.shape, held.dtype):
        raise Uncovered(
            f"{wanted.name}: the model has {wanted.dtype}{list(wanted.shape)}, the snapshot"
            f" {held.dtype}{list(held.shape)}; restore with the model that was saved, or start anew"
        )


def runs(piece: Piece, box: Box) -> Iterator[tuple[int, int]]:
    """Byte ranges (start, length) of `box` inside a stored piece, in row-major order of the box."""
    size, full = box.size, piece.box.size
    inner = len(size)
    while inner > 0 and size[inner - 1 :] == full[inner - 1 :]:
        inner -= 1
    lead = max(inner - 1, 0)
    length = prod(size[lead:]) * piece.itemsize
    strides = [prod(full[d + 1 :]) * piece.itemsize for d in range(len(full))]
    start = [o - p for o, p in zip(box.offset, piece.box.offset, strict=True)]
    base = piece.at + sum(s * k for s, k in zip(start, strides, strict=True))
    if not box.count:
        return
    for row in range(prod(size[:lead])):
        at = base
        for dim in range(lead - 1, -1, -1):
            row, step = divmod(row, size[dim])  # noqa: PLW2901 -- a mixed-radix counter
            at += step * strides[dim]
        yield at, length
