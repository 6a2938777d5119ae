"""The life of the buffers that hold snapshots: free, filling, sealed; and who may touch them when.

A buffer is never handed out for writing while it is sealed or anybody reads it. Pure bookkeeping; the bytes
are in `arena`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from muster.elastic.protocol import Shard


class State(StrEnum):
    FREE = "free"
    FILLING = "filling"
    SEALED = "sealed"


class SlotError(RuntimeError):
    """A buffer was about to be used out of turn."""


@dataclass(slots=True)
class Slot:
    id: int
    size: int
    state: State = State.FREE
    readers: int = 0
    shard: Shard | None = None
    doomed: bool = False  # free it as soon as nobody reads it


@dataclass(slots=True)
class Slots:
    slots: dict[int, Slot] = field(default_factory=dict)

    def add(self, slot_id: int, size: int) -> Slot:
        if slot_id in self.slots:
            raise SlotError(f"buffer {slot_id} exists")
        self.slots[slot_id] = Slot(slot_id, size)
        return self.slots[slot_id]

    def grant(self, allowed: frozenset[int] | None = None) -> Slot | None:
        """A free buffer to fill, or None: nobody waits for one."""
        for slot in self.slots.values():
            if slot.state is State.FREE and (allowed is None or slot.id in allowed):
                slot.state = State.FILLING
                return slot
        return None

    def seal(self, slot_id: int, shard: Shard) -> None:
        slot = self._in(slot_id, State.FILLING)
        slot.state, slot.shard = State.SEALED, shard

    def abandon(self, slot_id: int) -> None:
        """The writer gave up or died before sealing."""
        slot = self._in(slot_id, State.FILLING)
        slot.state = State.FREE

    def read(self, slot_id: int) -> Slot:
        slot = self._in(slot_id, State.SEALED)
        slot.readers += 1
        return slot

    def done(self, slot_id: int) -> bool:
        """One reader less; whether that freed the buffer."""
        slot = self._in(slot_id, State.SEALED)
        if not slot.readers:
            raise SlotError(f"buffer {slot_id} has no reader")
        slot.readers -= 1
        return self._settle(slot)

    def drop(self, slot_id: int) -> bool:
        """What it holds is no longer needed; whether it is free now or only once its readers are done."""
        slot = self._in(slot_id, State.SEALED)
        slot.doomed = True
        return self._settle(slot)

    def _settle(self, slot: Slot) -> bool:
        if slot.readers or not slot.doomed:
            return False
        slot.state, slot.shard, slot.doomed = State.FREE, None, False
        return True

    def _in(self, slot_id: int, state: State) -> Slot:
        slot = self.slots.get(slot_id)
        if slot is None or slot.state is not state:
            raise SlotError(f"buffer {slot_id} is {slot.state if slot else 'unknown'}, not {state}")
        return slot


def obsolete(held: list[Shard], epoch: int, step: int) -> list[Shard]:
    """What may go once every shard of `step` as cut in `epoch` is sealed on enough agents."""
    return [s for s in held if (s.epoch, s.step) < (epoch, step)]


def abandoned(held: list[Shard], epoch: int, step: int) -> list[Shard]:
    """What a rollback to `step` in `epoch` leaves behind: a future that did not happen."""
    return [s for s in held if s.epoch < epoch and s.step > step]


def complete(copies: dict[int, int], of: int, enough: int) -> bool:
    """Whether every part of a cut is held by enough agents."""
    return all(copies.get(i, 0) >= enough for i in range(of))
