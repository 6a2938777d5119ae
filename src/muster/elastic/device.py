"""Snapshots of a GPU's state: copied on a side stream, and what is late spilled on the device.

A thread keeps a few chunks in flight towards page-locked memory. When the optimizer is about to write, the
chunks not yet under way are copied into spare device memory, which takes a hundredth of the time the bus
needs, and go on from there. The compute stream waits for the few in flight; the host waits for nothing.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from muster.elastic.snapshot import CHUNK, Copying, Plan, Target

IN_FLIGHT = 3
TELL = 256 << 20  # the agent hears of progress in such steps, to begin with the checksums
SPARE = 1 << 30  # device memory left alone when spilling


@dataclass(slots=True)
class Chunk:
    source: torch.Tensor
    into: torch.Tensor


def chunks(view: torch.Tensor, into: torch.Tensor) -> Iterator[Chunk]:
    """Pieces of at most CHUNK bytes, cut along the first dimension where there is one."""
    rows = view.shape[0] if view.dim() else 1
    each = max(1, CHUNK * rows // max(view.nbytes, 1))
    if rows <= each or not view.dim():
        yield Chunk(view, into)
        return
    for at in range(0, rows, each):
        yield Chunk(view[at : at + each], into[at : at + each])


class DeviceCopying(Copying):
    def __init__(self, plan: Plan, target: Target, stream: torch.cuda.Stream) -> None:
        super().__init__(plan, target)
        self.stream = stream
        self.lock = threading.Lock()
        self.waiting: list[Chunk] = []
        self.flying: list[tuple[torch.cuda.Event, Chunk]] = []
        self.told = 0
        self.late = 0  # bytes that had to be waited for because the device had no room
        self.held: list[torch.Tensor] = []

    def start(self, sealed: Callable[[], None]) -> None:
        self.sealed = sealed
        self.ahead()
        self.stream.wait_stream(torch.cuda.current_stream())
        threading.Thread(target=self._run, daemon=True, name="snapshot").start()

    def ahead(self) -> None:
        """What the forward pass changes is copied on the device first; everything is queued in order."""
        for part, piece in zip(self.plan.parts, self.plan.pieces, strict=True):
            view = part.view.clone() if part.changes else part.view
            self.waiting.extend(chunks(view, self.view(piece)))
        self.waiting.reverse()

    def copy(self) -> None:
        torch.cuda.set_device(self.stream.device)
        while self._launch():
            if len(self.flying) >= IN_FLIGHT:
                self._land()
        while self.flying:
            self._land()
        self.held.clear()

    def _launch(self) -> bool:
        with self.lock:
            if not self.waiting:
                return False
            chunk = self.waiting.pop()
            with torch.cuda.stream(self.stream):
                chunk.into.copy_(chunk.source, non_blocking=True)
                event = torch.cuda.Event()  # type: ignore[no-untyped-call]
                event.record(self.stream)
            self.flying.append((event, chunk))
        return True

    def _land(self) -> None:
        self.flying[0][0].synchronize()
        with self.lock:
            _, chunk = self.flying.pop(0)
        end = chunk.into.data_ptr() - self.target.bytes.data_ptr() + chunk.into.nbytes
        if end - self.told >= TELL:
            self.told = end
            self.landed(end)

    def let_go(self) -> None:
        """The optimizer comes: spill what is waiting, let the compute stream wait for what is in flight."""
        with self.lock:
            left = sum(c.source.nbytes for c in self.waiting if c.source.is_cuda)
            room = self._room(left)
            if room:
                self._spill(left)
            for event, _ in self.flying:
                torch.cuda.current_stream().wait_event(event)
        if not room:
            self.late += left
            self.join()

    def _room(self, size: int) -> bool:
        free, _ = torch.cuda.mem_get_info()
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return size + SPARE <= free + cached

    def _spill(self, size: int) -> None:
        movable = [c for c in self.waiting if c.source.is_cuda]
        if not movable:
            return
        flat = torch.empty(size, dtype=torch.uint8, device=movable[0].source.device)
        at, views = 0, []
        for chunk in sorted(movable, key=lambda c: -c.source.element_size()):
            data = flat[at : at + chunk.source.nbytes].view(chunk.source.dtype).view(chunk.source.shape)
            views.append((chunk, data))
            at += chunk.source.nbytes
        torch._foreach_copy_([d for _, d in views], [c.source for c, _ in views])
        for chunk, data in views:
            chunk.source = data
        self.held.append(flat)
        self.spilled += size
        self.stream.wait_stream(torch.cuda.current_stream())
