"""Buffers on loan to the worker: granted when free, filled by it, checked as they fill, taken back if it dies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.elastic.arena import Arena, Sums
from muster.elastic.child import Child

KINDS = frozenset({"want", "unused", "layout", "filled", "landed"})


@dataclass(slots=True)
class Lending:
    """Its methods named in KINDS answer the worker's messages of that kind."""

    arena: Arena
    aside: Callable[..., None]
    checked: Callable[[dict[str, Any], tuple[int, ...]], None]
    waiting: list[tuple[Child, dict[str, Any]]] = field(default_factory=list)
    sums: dict[int, Sums] = field(default_factory=dict)
    checking: set[int] = field(default_factory=set)  # filled buffers whose checksums are being computed: ours already

    def want(self, child: Child, message: dict[str, Any]) -> None:
        """It asks for a buffer: one of its own as soon as one is free, a passing one at once."""
        if message["passing"]:
            slot = self.arena.grant(message["size"], lasting=False)
            if slot is not None:
                self._hand(child, slot, message)
        else:
            self.waiting = [(c, m) for c, m in self.waiting if c is not child] + [(child, message)]
            self.grant()

    def grant(self) -> None:
        for child, message in self.waiting[:]:
            slot = self.arena.grant(message["size"], lasting=True)
            if slot is not None:
                self.waiting.remove((child, message))
                self._hand(child, slot, message)

    def _hand(self, child: Child, slot: int, message: dict[str, Any]) -> None:
        known = slot in child.slots
        child.slots.add(slot)
        buffer = self.arena.buffers[slot]
        size = self.arena.slots.slots[slot].size
        fds = () if known else (buffer.fd,)
        child.channel.send("slot", fds, slot=slot, size=size, passing=message["passing"], serial=message["serial"])

    def unused(self, child: Child, message: dict[str, Any]) -> None:
        """A buffer it was given does not fit any more."""
        child.slots.discard(message["slot"])
        self.arena.abandon(message["slot"])

    def layout(self, child: Child, message: dict[str, Any]) -> None:
        """How large its snapshots are now: two buffers of that size, unless there are some already."""
        self.waiting = [(c, m | {"size": message["size"]} if c is child else m) for c, m in self.waiting]
        sizes = [self.arena.slots.slots[i].size for i, b in self.arena.buffers.items() if b.lasting]
        if len(sizes) == 2 and min(sizes) >= message["size"] and max(sizes) <= 2 * message["size"]:
            return
        self.arena.retire()
        for _ in range(2):
            self.arena.allocate(message["size"], lasting=True)
        self.grant()

    def filled(self, _: Child, message: dict[str, Any]) -> None:
        """A snapshot is complete in shared memory: add its checksums, then it counts."""
        self.checking.add(message["slot"])
        sums = self.sums.pop(message["slot"], None) or Sums(self.arena.writing(message["slot"]))
        self.aside(self._check, message, sums)

    def landed(self, _: Child, message: dict[str, Any]) -> None:
        """So much of a snapshot has arrived: its checksums need not wait for the rest."""
        slot = message["slot"]
        if slot not in self.sums:
            self.sums[slot] = Sums(self.arena.writing(slot))
        self.sums[slot].landed(message["end"])

    def _check(self, message: dict[str, Any], found: Sums) -> None:
        sums = found.finish(message["data"] + message["manifest"])
        self.checked(message, sums)

    def take_back(self, child: Child) -> None:
        """Half-filled buffers of a dead worker are void; sealed ones are what it leaves behind."""
        self.waiting = [(c, m) for c, m in self.waiting if c is not child]
        for slot in child.slots - self.checking:
            if partial := self.sums.pop(slot, None):
                partial.finish(0)
            self.arena.abandon(slot)
