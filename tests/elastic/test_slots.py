"""Buffers are never overwritten while sealed or read."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from muster.elastic.protocol import Shard
from muster.elastic.slots import SlotError, Slots, State, abandoned, complete, obsolete


class SlotMachine(RuleBasedStateMachine):
    """Writers, readers and droppers in any order; the bytes are a counter per buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots()
        for i in range(3):
            self.slots.add(i, 10)
        self.content = dict.fromkeys(range(3), 0)
        self.reading: list[tuple[int, int]] = []
        self.written = 0

    @rule()
    def fill(self) -> None:
        slot = self.slots.grant()
        if slot is not None:
            self.written += 1
            self.content[slot.id] = self.written

    @rule(i=st.integers(0, 2))
    def seal(self, i: int) -> None:
        if self.slots.slots[i].state is State.FILLING:
            self.slots.seal(i, Shard(self.written, 1, 0, 1))
        else:
            with pytest.raises(SlotError):
                self.slots.seal(i, Shard(0, 0, 0, 1))

    @rule(i=st.integers(0, 2))
    def read(self, i: int) -> None:
        if self.slots.slots[i].state is State.SEALED and not self.slots.slots[i].doomed:
            self.slots.read(i)
            self.reading.append((i, self.content[i]))

    @rule()
    def stop_reading(self) -> None:
        if self.reading:
            i, _ = self.reading.pop(0)
            self.slots.done(i)

    @rule(i=st.integers(0, 2))
    def drop(self, i: int) -> None:
        if self.slots.slots[i].state is State.SEALED:
            self.slots.drop(i)

    @rule(i=st.integers(0, 2))
    def abandon(self, i: int) -> None:
        if self.slots.slots[i].state is State.FILLING:
            self.slots.abandon(i)

    @invariant()
    def readers_see_what_was_sealed(self) -> None:
        for i, content in self.reading:
            assert self.content[i] == content
            assert self.slots.slots[i].state is State.SEALED


SlotMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestSlots = SlotMachine.TestCase


def test_what_may_go_is_older_than_what_is_committed() -> None:
    held = [Shard(5, 1, 0, 2), Shard(6, 1, 0, 2), Shard(6, 2, 0, 2), Shard(7, 2, 0, 2)]
    assert obsolete(held, 2, 6) == held[:2]
    assert abandoned([*held, Shard(9, 1, 0, 2)], 2, 6) == [Shard(9, 1, 0, 2)]


def test_a_step_counts_once_every_part_is_on_enough_agents() -> None:
    assert complete({0: 2, 1: 2}, 2, 2)
    assert not complete({0: 2, 1: 1}, 2, 2)
    assert not complete({0: 2}, 2, 2)


def test_a_buffer_nobody_reads_has_no_reader_to_finish() -> None:
    slots = Slots()
    slots.add(1, 1)
    with pytest.raises(SlotError, match="exists"):
        slots.add(1, 1)
    slots.grant()
    slots.seal(1, Shard(0, 1, 0, 1))
    with pytest.raises(SlotError, match="no reader"):
        slots.done(1)
