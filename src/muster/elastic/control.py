"""The worker's end of the channel to its agent: what the authority wants, and the beat that shows life.

A thread of its own listens, so that a worker blocked in a collective is still told to let go: it calls
`release` from there.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.elastic.channel import Channel
from muster.elastic.protocol import Document, decode

BEAT = 0.2
ORPHANED = 75  # the exit code of a worker whose agent is gone


@dataclass(slots=True)
class Grant:
    """A buffer this worker may fill now."""

    slot: int
    size: int
    fd: int | None


@dataclass(slots=True)
class Control:
    channel: Channel
    release: Callable[[int], None]  # let go of all groups older than an epoch
    changed: threading.Condition = field(default_factory=threading.Condition)
    wanted: int = 0  # the newest epoch being prepared
    planned: bool = False
    committed: Document | None = None
    saved: int = -1  # the newest step known to be on enough agents
    grants: dict[int, Grant] = field(default_factory=dict)
    serial: int = 0
    name: str = ""
    arrived: Callable[[Grant], None] | None = None  # what has to be done with a new buffer, on another thread

    def start(self) -> None:
        threading.Thread(target=self._listen, daemon=True, name="control").start()
        threading.Thread(target=self._beat, daemon=True, name="beat").start()

    def say(self, kind: str, **more: Any) -> None:
        self.channel.send(kind, **more)

    def want(self, size: int, *, passing: bool) -> int:
        """Ask for a buffer; the answer is found under the number returned."""
        with self.changed:
            self.serial += 1
            serial = self.serial
        self.say("want", size=size, passing=passing, serial=serial)
        return serial

    def granted(self, serial: int, seconds: float = 0.0) -> Grant | None:
        with self.changed:
            self.changed.wait_for(lambda: serial in self.grants, seconds)
            return self.grants.pop(serial, None)

    def interrupted(self, epoch: int) -> bool:
        """Whether training in `epoch` has to stop at once."""
        return self.wanted > epoch and not self.planned

    def leaving(self, epoch: int) -> bool:
        """Whether training in `epoch` has to stop at the next step boundary all agree on."""
        return self.wanted > epoch

    def next_epoch(self, after: int) -> Document:
        """Wait for the commit of an epoch newer than `after`, and than any being prepared."""
        with self.changed:
            self.changed.wait_for(lambda: self._ready(after))
            assert self.committed is not None
            return self.committed

    def me(self, document: Document) -> str:
        """This member's id, as the agent named it with the commit."""
        assert self.name in {m.id for m in document.members}
        return self.name

    def _ready(self, after: int) -> bool:
        return self.committed is not None and self.committed.epoch >= max(after + 1, self.wanted)

    def _beat(self) -> None:
        while self.channel.send("beat"):
            time.sleep(BEAT)
            if self.wanted and not self.planned:
                self.release(self.wanted)

    def _listen(self) -> None:
        while (got := self.channel.receive()) is not None:
            message, fds = got
            with self.changed:
                getattr(self, f"_on_{message['kind']}")(message, fds)
                self.changed.notify_all()
            if message["kind"] == "prepare" and not message["planned"]:
                self.release(message["epoch"])
        os._exit(ORPHANED)

    def _on_prepare(self, message: dict[str, Any], _: list[int]) -> None:
        self.wanted, self.planned = message["epoch"], message["planned"]

    def _on_commit(self, message: dict[str, Any], _: list[int]) -> None:
        self.name = message["me"]
        self.committed = decode(Document, message["document"])

    def _on_slot(self, message: dict[str, Any], fds: list[int]) -> None:
        grant = Grant(message["slot"], message["size"], fds[0] if fds else None)
        if self.arrived is None or grant.fd is None:
            self.grants[message["serial"]] = grant
        else:
            threading.Thread(target=self._welcome, args=(message["serial"], grant), daemon=True).start()

    def _welcome(self, serial: int, grant: Grant) -> None:
        assert self.arrived is not None
        self.arrived(grant)
        with self.changed:
            self.grants[serial] = grant
            self.changed.notify_all()

    def _on_committed(self, message: dict[str, Any], _: list[int]) -> None:
        self.saved = max(self.saved, message["step"])
