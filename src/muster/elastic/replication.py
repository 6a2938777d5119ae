"""Copies of sealed shards on other agents, and when there are enough of them for a step to count."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from muster.elastic.arena import Arena
from muster.elastic.crash import crash_point
from muster.elastic.peer import Peers
from muster.elastic.protocol import Member, Shard, protected_by
from muster.elastic.slots import complete

PAUSE = 0.1


@dataclass(slots=True)
class Replication:
    peers: Peers
    arena: Arena
    replicas: int
    epoch: Callable[[], int]
    copies: dict[Shard, int] = field(default_factory=dict)  # kept by the first member's agent

    def replicate(self, shard: Shard, members: tuple[Member, ...]) -> None:
        """Copy to agents in other domains, then tell the first member's agent; repeated until the epoch ends."""
        where = protected_by(members, shard.index, min(self.replicas, len(members) - 1))
        for other in where:
            while not self._put(shard, members[other]):
                if self.epoch() > shard.epoch or shard not in self.arena.holdings:
                    return
                time.sleep(PAUSE)
        note = {"do": "sealed", "epoch": shard.epoch, "shard": asdict(shard), "copies": 1 + len(where)}
        self.note(members[0], note)

    def _put(self, shard: Shard, to: Member) -> bool:
        crash_point("replicate")
        try:
            self.peers.put(self.arena, shard, to.address)
        except (OSError, RuntimeError):
            return False
        return True

    def note(self, to: Member, head: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.peers.call(to.address, {"op": "note"} | head)

    def committed(self, shard: Shard, copies: int, members: tuple[Member, ...]) -> bool:
        """Whether this news completes a step: every part of it is on enough agents."""
        self.copies[shard] = copies
        parts = {s.index: c for s, c in self.copies.items() if s.step == shard.step and s.epoch == shard.epoch}
        if not complete(parts, shard.of, min(1 + self.replicas, len(members))):
            return False
        self.copies = {s: c for s, c in self.copies.items() if s.step > shard.step}
        return True
