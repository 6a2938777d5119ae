"""Copies of the training state, taken while training goes on.

A snapshot starts right after a step and runs beside the next forward and backward pass, which only read what is
copied. The fence before the optimizer is where it must have let go: on a GPU what is not yet copied by then is
spilled into spare device memory, so that training does not wait for the bus. Without a free buffer there is no
snapshot and nobody waits; it is counted.
"""

import mmap
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from muster.elastic.arena import described
from muster.elastic.control import Control, Grant
from muster.elastic.layout import Piece, packed
from muster.elastic.pinned import lock_pages, unlock_pages
from muster.elastic.protocol import Shard
from muster.elastic.state import Part

CHUNK = 32 << 20
SMALL = 1 << 20  # up to here a copy is quicker than waking a thread
ROOM = 256 << 10  # for the description of a shard, next to what its pieces need


@dataclass(slots=True)
class Target:
    """A buffer of the agent as this process sees it."""

    memory: mmap.mmap
    bytes: torch.Tensor
    locked: bool


@dataclass(slots=True)
class Plan:
    """What is saved in this epoch, and where in a shard it goes."""

    parts: list[Part]
    pieces: tuple[Piece, ...]
    data: int

    @property
    def size(self) -> int:
        return self.data + 2 * len(described(self.pieces)) + ROOM


def planned(parts: list[Part]) -> Plan:
    pieces, size = packed(p.piece for p in parts)
    return Plan(parts, pieces, size)


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one worker: at most one is being copied at a time."""

    control: Control
    copier: Callable[["Plan", Target], "Copying"]
    device: str = "cpu"
    plan: Plan | None = None
    targets: dict[int, Target] = field(default_factory=dict)
    serial: int | None = None
    copying: "Copying | None" = None
    skipped: int = 0
    taken: int = -1  # the step last copied
    lock_seconds: float = 0.0

    def lay_out(self, parts: list[Part]) -> None:
        """A new epoch, or the first step that gave the optimizer its state: plan anew."""
        self.plan = planned(parts)
        self.control.say("layout", size=self.plan.size)
        self.serial = self.control.want(self.plan.size, passing=False)

    def take(self, shard: Shard, extra: dict[str, Any], *, wait: float = 0.0) -> bool:
        """Start a snapshot if a buffer is free (or becomes free within `wait` seconds)."""
        plan, grant = self.plan, self._grant(wait)
        if plan is None or grant is None or grant.size < plan.size:
            self.skipped += 1
            return False
        self.serial = None
        self._fill(plan, grant, shard, extra)
        self.taken = shard.step
        return True

    def _grant(self, wait: float) -> Grant | None:
        if self.serial is None:
            assert self.plan is not None
            self.serial = self.control.want(self.plan.size, passing=False)
        grant = self.control.granted(self.serial, wait)
        if grant is not None:
            self.serial = None
        return grant

    def hand_over(self, parts: list[Part], shard: Shard, extra: dict[str, Any]) -> None:
        """Put state where others can fetch it, in a buffer of its own, and wait until it is there."""
        plan = planned(parts)
        grant = self.control.granted(self.control.want(plan.size, passing=True), 30.0)
        if grant is None:
            raise RuntimeError("the agent gave no buffer to hand the state over")
        self._fill(plan, grant, shard, extra)
        self.settle()
        self.forget(grant.slot)

    def _fill(self, plan: Plan, grant: Grant, shard: Shard, extra: dict[str, Any]) -> None:
        self.settle()
        note = described(plan.pieces, **extra)
        if plan.data + len(note) > grant.size:
            raise RuntimeError(f"the state beside the tensors takes {len(note)} bytes, more than there is room for")
        target = self._target(grant)

        def sealed() -> None:
            target.bytes[plan.data : plan.data + len(note)] = torch.frombuffer(bytearray(note), dtype=torch.uint8)
            self.control.say("filled", slot=grant.slot, data=plan.data, manifest=len(note), shard=asdict(shard))

        self.copying = self.copier(plan, target)
        self.copying.start(sealed)

    def _target(self, grant: Grant) -> Target:
        if grant.fd is not None:
            self.forget(grant.slot)
            memory = mmap.mmap(grant.fd, grant.size)
            os.close(grant.fd)
            data = torch.frombuffer(memory, dtype=torch.uint8)
            begun = time.perf_counter()
            locked = self.device != "cpu" and lock_pages(data)
            self.lock_seconds += time.perf_counter() - begun
            self.targets[grant.slot] = Target(memory, data, locked)
        return self.targets[grant.slot]

    def forget(self, slot: int) -> None:
        target = self.targets.pop(slot, None)
        if target is not None and target.locked:
            unlock_pages(target.bytes)

    def fence(self) -> float:
        """Before the optimizer writes: returns the seconds training had to wait."""
        if self.copying is None:
            return 0.0
        begun = time.perf_counter()
        self.copying.let_go()
        return time.perf_counter() - begun

    def settle(self) -> None:
        """Wait until nothing is being copied."""
        if self.copying is not None:
            self.copying.join()
            self.copying = None


class Copying:
    """One snapshot under way on the CPU: a thread copies, or the caller if there is little."""

    def __init__(self, plan: Plan, target: Target) -> None:
        self.plan, self.target = plan, target
        self.finished = threading.Event()
        self.error: BaseException | None = None

    def start(self, sealed: Callable[[], None]) -> None:
        self.sealed = sealed
        self.ahead()
        if self.plan.data <= SMALL:
            self._run()
            self._raise()
        else:
            threading.Thread(target=self._run, daemon=True, name="snapshot").start()

    def ahead(self) -> None:
        """Copy at once what the forward pass changes."""
        for part, piece in zip(self.plan.parts, self.plan.pieces, strict=True):
            if part.changes:
                self.view(piece).copy_(part.view)

    def view(self, piece: Piece) -> torch.Tensor:
        data = self.target.bytes[piece.at : piece.at + piece.nbytes]
        return data.view(getattr(torch, piece.dtype)).view(piece.box.size)

    def _run(self) -> None:
        try:
            self.copy()
            self.sealed()
        except BaseException as error:
            self.error = error
        finally:
            self.finished.set()

    def copy(self) -> None:
        for part, piece in zip(self.plan.parts, self.plan.pieces, strict=True):
            if not part.changes:
                self.view(piece).copy_(part.view)

    def let_go(self) -> None:
        self.join()

    def join(self) -> None:
        self.finished.wait()
        self._raise()

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error


