"""Copies of the training state, taken while training goes on.

A snapshot starts right after a step and runs beside the next forward and backward pass, which only read what
is copied. The fence before the optimizer is where it must have let go: on a GPU what is not yet copied by
then is spilled into spare device memory, so that training does not wait for the bus. Without a free buffer
there is no snapshot and nobody waits; it is counted.
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
    grant: Grant | None = None
    copying: "Copying | None" = None
    skipped: int = 0
    taken: int = -1  # the step last copied
    lock_seconds: float = 0.0

    def lay_out(self, parts: list[Part]) -> None:
        """A new epoch, or the first step that gave the optimizer its state: plan anew."""
        self.plan = planned(parts)
        self.control.say("layout", size=self.plan.size)

    def take(self, shard: Shard, extra: dict[str, Any]) -> bool:
        """Start a snapshot if there is a buffer for it."""
        if not self.ready():
            return False
        assert self.plan is not None and self.grant is not None
        grant, self.grant = self.grant, None
        self._fill(self.plan, grant, shard, extra)
        self.taken = shard.step
        self.serial = self.control.want(self.plan.size, passing=False)
        return True

    def ready(self) -> bool:
        """Whether there is a buffer to fill."""
        if self.grant is not None and self.plan is not None and self.grant.size < self.plan.size:
            self._give_back(self.grant)
            self.grant = None
        if self.grant is None:
            self.grant = self._granted()
        return self.grant is not None

    def _granted(self) -> Grant | None:
        """The buffer asked for, once there is one; those of an older plan may be too small and go back."""
        if self.plan is None:
            return None
        while True:
            if self.serial is None:
                self.serial = self.control.want(self.plan.size, passing=False)
            grant = self.control.granted(self.serial)
            if grant is None:
                return None
            self.serial = None
            if grant.size >= self.plan.size:
                return grant
            self._give_back(grant)

    def _give_back(self, grant: Grant) -> None:
        if grant.fd is not None:
            os.close(grant.fd)
        self.forget(grant.slot)
        self.control.say("unused", slot=grant.slot)

    def save(self, shard: Shard, extra: dict[str, Any]) -> None:
        """A snapshot that must be taken, in a passing buffer when what memory there is holds older ones."""
        assert self.plan is not None
        if not self.take(shard, extra):
            self._pass(self.plan, shard, extra)
            self.taken = shard.step

    def hand_over(self, parts: list[Part], shard: Shard, extra: dict[str, Any]) -> None:
        """Put state where others can fetch it."""
        self._pass(planned(parts), shard, extra)

    def _pass(self, plan: Plan, shard: Shard, extra: dict[str, Any]) -> None:
        grant = self.control.granted(self.control.want(plan.size, passing=True), 30.0)
        if grant is None:
            raise RuntimeError("the agent gave no buffer to save the state in")
        self._fill(plan, grant, shard, extra)
        self.settle()
        self.forget(grant.slot)

    def _fill(self, plan: Plan, grant: Grant, shard: Shard, extra: dict[str, Any]) -> None:
        self.settle()
        note = described(plan.pieces, **extra)
        if plan.data + len(note) > grant.size:
            raise RuntimeError(f"the state beside the tensors takes {len(note)} bytes, more than there is room for")
        target = self.target(grant)

        def sealed() -> None:
            target.bytes[plan.data : plan.data + len(note)] = torch.frombuffer(bytearray(note), dtype=torch.uint8)
            self.control.say("filled", slot=grant.slot, data=plan.data, manifest=len(note), shard=asdict(shard))

        self.copying = self.copier(plan, target)
        self.copying.landed = lambda end: self.control.say("landed", slot=grant.slot, end=end)
        self.copying.start(sealed)

    def arrived(self, grant: Grant) -> None:
        """A buffer was granted: page-locking takes long, so it is done before anybody asks for the buffer."""
        if grant.fd is not None and self.device != "cpu":
            self.target(grant)
            grant.fd = None

    def target(self, grant: Grant) -> Target:
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
        self.seconds = 0.0
        self.spilled = 0  # bytes taken aside on the device
        self.landed: Callable[[int], object] = bool

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
        begun = time.perf_counter()
        try:
            self.copy()
            self.seconds = time.perf_counter() - begun
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
