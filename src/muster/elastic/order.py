"""In which order samples are used: a fixed permutation, and one cursor that moves with the model.

The order depends on the seed and the pass over the data alone, never on how many workers there are. A step
takes the next window of it, every worker a part of that window; so any history of memberships uses every
sample exactly once. The permutation is computed, not stored (a Feistel network walked until it lands inside),
and the whole position in the data is two integers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.elastic.layout import even

_MASK = (1 << 64) - 1
_ROUNDS = 6


def mix(value: int) -> int:
    """A 64-bit finaliser: every input bit reaches every output bit."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def seed_of(*parts: int) -> int:
    """One seed from several numbers, such as (seed, step, rank); fits torch.manual_seed."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = mix((state + part * 0x9E3779B97F4A7C15) & _MASK)
    return state >> 1


@dataclass(frozen=True, slots=True)
class Permutation:
    size: int
    seed: int
    turn: int

    def __call__(self, index: int) -> int:
        if not 0 <= index < self.size:
            raise IndexError(f"{index} is outside a permutation of {self.size}")
        half = max(1, ((self.size - 1).bit_length() + 1) // 2)
        low, key = (1 << half) - 1, seed_of(self.seed, self.turn)
        while True:
            left, right = index >> half, index & low
            for turn in range(_ROUNDS):
                left, right = right, left ^ (mix((right + key + turn * 0x632BE59BD9B4E019) & _MASK) & low)
            index = left << half | right
            if index < self.size:
                return index


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything before `position` of pass `turn` is used, nothing after it."""

    turn: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """The positions one step consumes, and the cursor once it has."""

    turn: int
    start: int
    stop: int
    after: Cursor

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, parts: int, index: int) -> range:
        start, size = even(len(self), parts, index)
        return range(self.start + start, self.start + start + size)


def window(cursor: Cursor, size: int, batch: int) -> Window:
    """The next window of at most `batch` samples; the last one of a pass is short, never padded."""
    stop = min(cursor.position + batch, size)
    after = Cursor(cursor.turn + 1, 0) if stop == size else Cursor(cursor.turn, stop)
    return Window(cursor.turn, cursor.position, stop, after)


def windows(cursor: Cursor, size: int, batch: int, turns: int) -> Iterator[Window]:
    """Every window that is left, up to `turns` passes."""
    while cursor.turn < turns:
        step = window(cursor, size, batch)
        yield step
        cursor = step.after


def leases(done: dict[int, int | None], count: int, world: int) -> list[list[int]]:
    """Who reads which of `count` shards: the unfinished ones, dealt by rank. None marks a finished shard."""
    open_shards = [i for i in range(count) if done.get(i, 0) is not None]
    return [open_shards[rank::world] for rank in range(world)]
