"""The agent's way to the durable store: one short-lived process per save, never the training process.

The process inherits the sealed buffer by descriptor, so nothing is copied and the agent needs no torch. While
it writes, the shard counts as being read and stays.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.elastic.arena import Arena
from muster.elastic.protocol import Shard


@dataclass(slots=True)
class Flusher:
    store: str
    arena: Arena
    done: Callable[[int, float], None]
    busy: list[threading.Thread] = field(default_factory=list)

    def save(self, shard: Shard) -> None:
        if not self.store:
            return
        self.busy = [t for t in self.busy if t.is_alive()]
        thread = threading.Thread(target=self._save, args=(shard,), daemon=True, name="durable")
        self.busy.append(thread)
        thread.start()

    def _save(self, shard: Shard) -> None:
        begun = time.monotonic()
        try:
            with self.arena.reading(shard) as (holding, view):
                view.release()
                fd = self.arena.buffers[holding.slot].fd
                order = {
                    "fd": fd,
                    "store": self.store,
                    "data": holding.data,
                    "manifest": holding.manifest,
                    "sums": list(holding.sums),
                    "step": shard.step,
                    "index": shard.index,
                    "of": shard.of,
                    "epoch": shard.epoch,
                }
                command = [sys.executable, "-m", "muster.elastic.checkpoint", json.dumps(order)]
                subprocess.run(command, pass_fds=[fd], check=True)  # noqa: S603 -- our own module
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"muster.elastic: step {shard.step} is not durable: {error}", file=sys.stderr)  # noqa: T201
        self.done(shard.step, time.monotonic() - begun)

    def finish(self, seconds: float) -> None:
        """Let running saves end, within what grace there is."""
        until = time.monotonic() + seconds
        for thread in self.busy:
            thread.join(max(0.0, until - time.monotonic()))
