"""Re-sharding covers every byte exactly once, from any layout into any other."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.elastic.layout import (
    Box,
    Piece,
    Uncovered,
    by_name,
    chunk,
    even,
    fetches,
    intersection,
    owned,
    packed,
    runs,
    sharded,
    whole,
    without,
)
from muster.elastic.transfer import tiles

Saved = list[tuple[tuple[Piece, ...], bytes]]
shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...]) -> list[tuple[Box, int, int]]:
    """A mesh of one or two dimensions, each replicating or cutting a dimension; (box, replica, copies) per
    rank.
    """
    mesh = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    placed = [draw(st.none() | st.integers(0, len(shape) - 1)) for _ in mesh]
    ranks = []
    for rank in range(prod(mesh)):
        at: list[int] = []
        rest = rank
        for size in reversed(mesh):
            rest, i = divmod(rest, size)
            at.insert(0, i)
        cuts = [(d, n, i) for d, n, i in zip(placed, mesh, at, strict=True) if d is not None]
        index, copies = 0, 1
        for d, n, i in zip(placed, mesh, at, strict=True):
            if d is None:
                index, copies = index * n + i, copies * n
        ranks.append((sharded(shape, cuts), index, copies))
    return ranks


def bytes_of(data: bytes, shape: tuple[int, ...], box: Box, itemsize: int) -> bytes:
    piece = Piece("t", "x", itemsize, shape, whole(shape))
    return b"".join(data[a : a + n] for a, n in runs(piece, box))


def saved(data: bytes, shape: tuple[int, ...], ranks: list[tuple[Box, int, int]], itemsize: int) -> Saved:
    """One shard per rank: its own part of the tensor, and the bytes."""
    shards = []
    for box, index, copies in ranks:
        mine = owned("t", box, index, copies)
        pieces, size = packed([Piece("t", "x", itemsize, shape, mine)] if mine else [])
        memory = bytearray(size)
        for p in pieces:
            memory[p.at : p.at + p.nbytes] = bytes_of(data, shape, p.box, itemsize)
        shards.append((pieces, bytes(memory)))
    return shards


@given(st.data(), shapes, st.sampled_from([1, 2, 4]))
def test_gathering_the_new_layout_gives_the_old_bytes(
    data: st.DataObject, shape: tuple[int, ...], itemsize: int
) -> None:
    content = bytes(i * 7 % 251 for i in range(prod(shape) * itemsize))
    old, new = data.draw(layouts(shape)), data.draw(layouts(shape))
    shards = saved(content, shape, old, itemsize)
    assert sum(p.nbytes for pieces, _ in shards for p in pieces) == len(content), "every byte is saved once"
    held = by_name((i, pieces) for i, (pieces, _) in enumerate(shards))
    for box, _, _ in new:
        got = {}
        for fetch in fetches(Piece("t", "x", itemsize, shape, box), held["t"]) if box.count else []:
            for tile in tiles(fetch.box, itemsize, 16):
                memory = shards[fetch.source][1]
                assert tile not in got
                got[tile] = b"".join(memory[a : a + n] for a, n in runs(fetch.piece, tile))
                assert got[tile] == bytes_of(content, shape, tile, itemsize)
        assert sum(map(len, got.values())) == box.count * itemsize, "every byte is fetched once"


@given(st.integers(0, 50), st.integers(1, 9))
def test_parts_cover_a_length_without_overlap(length: int, parts: int) -> None:
    for cut in (chunk, even):
        spans = [cut(length, parts, i) for i in range(parts)]
        assert sum(size for _, size in spans) == length
        assert [i for start, size in spans for i in range(start, start + size)] == list(range(length))


def test_chunks_are_cut_as_torch_cuts_them() -> None:
    import torch

    for length, parts in [(33, 4), (3, 4), (8, 4), (5, 2)]:
        want = [len(c) for c in torch.arange(length).chunk(parts)]
        got = [chunk(length, parts, i)[1] for i in range(parts)]
        assert [g for g in got if g] == want


@given(st.data(), shapes)
def test_a_hole_and_the_rest_make_the_box(data: st.DataObject, shape: tuple[int, ...]) -> None:
    box = whole(shape)
    offset = tuple(data.draw(st.integers(0, s - 1)) for s in shape)
    hole = Box(offset, tuple(data.draw(st.integers(1, s - o)) for s, o in zip(shape, offset, strict=True)))
    rest = list(without(box, hole))
    assert sum(r.count for r in rest) + hole.count == box.count
    assert all(intersection(r, hole) is None for r in rest)
    assert all(intersection(a, b) is None for a in rest for b in rest if a is not b)


def test_what_nobody_holds_is_an_error_that_names_it() -> None:
    half = Piece("w", "float32", 4, (4,), Box((0,), (2,)))
    with pytest.raises(Uncovered, match="w: nobody holds"):
        fetches(Piece("w", "float32", 4, (4,), whole((4,))), [(0, half)])


def test_a_changed_shape_is_an_error_that_says_so() -> None:
    held = Piece("w", "float32", 4, (4,), whole((4,)))
    with pytest.raises(Uncovered, match=r"the model has float32\[5\], the snapshot float32\[4\]"):
        fetches(Piece("w", "float32", 4, (5,), whole((5,))), [(0, held)])


def test_scalars_have_one_owner() -> None:
    owners = [owned("step", whole(()), i, 3) for i in range(3)]
    assert [o for o in owners if o] == [whole(())]
    assert list(runs(Piece("step", "float32", 4, (), whole(()), 64), whole(()))) == [(64, 4)]
