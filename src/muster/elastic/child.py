"""A worker process as its agent sees it: started, watched through its channel, ended."""

import os
import queue
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from muster.elastic.channel import VARIABLE, Channel, pair

Event = tuple[str, Any]


@dataclass(slots=True)
class Child:
    """One worker. What it says arrives in `events` as ("worker", (child, message)); its end as ("exit",
    child).
    """

    process: "subprocess.Popen[bytes]"
    channel: Channel
    born: float
    heard: float
    ready: bool = False
    parked: bool = False
    live: int | None = None
    whole: bool = False
    asked: int = 0  # the epoch it was last asked to stop for
    asked_at: float = 0.0
    epoch: int = 0
    slots: set[int] = field(default_factory=set)
    code: int | None = None

    def end(self) -> None:
        """Stopped processes die of this as well."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)


def spawn(command: list[str], extra: dict[str, str], events: "queue.SimpleQueue[Event]") -> Child:
    channel, theirs = pair()
    environment = os.environ | extra | {VARIABLE: str(theirs.fileno())}
    process = subprocess.Popen(  # noqa: S603 -- the command is the user's own training script
        command, env=environment, pass_fds=[theirs.fileno()]
    )
    theirs.close()
    now = time.monotonic()
    child = Child(process, channel, now, now)
    threading.Thread(target=_listen, args=(child, events), daemon=True, name="worker").start()
    return child


def _listen(child: Child, events: "queue.SimpleQueue[Event]") -> None:
    while (got := child.channel.receive()) is not None:
        message, fds = got
        for fd in fds:
            os.close(fd)
        child.heard = time.monotonic()
        if message["kind"] != "beat":
            events.put(("worker", (child, message)))
    child.code = child.process.wait()
    child.channel.close()
    events.put(("exit", child))
