"""The socket pair between an agent and its worker: whole messages, and descriptors alongside them."""

import contextlib
import json
import os
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

MOST = 128 << 10  # a message is at most this long; larger things travel in shared memory
VARIABLE = "MUSTER_ELASTIC_CHANNEL"


@dataclass(slots=True)
class Channel:
    sock: socket.socket
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, kind: str, /, fds: tuple[int, ...] = (), **more: Any) -> bool:
        """False if nobody is there any more."""
        data = json.dumps({"kind": kind} | more).encode()
        with self.lock:
            try:
                socket.send_fds(self.sock, [data], list(fds))
            except OSError:
                return False
        return True

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """The next message, or None once the other side is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, MOST, 4)
        except OSError:
            return None
        return (json.loads(data), list(fds)) if data else None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def pair() -> tuple[Channel, socket.socket]:
    """This side's channel, and the other side's socket to be inherited by a child."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for sock in (mine, theirs):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
    return Channel(mine), theirs


def inherited() -> Channel | None:
    """The channel to the agent that started this process; None when there is no agent."""
    number = os.environ.pop(VARIABLE, None)
    if number is None:
        return None
    sock = socket.socket(fileno=int(number))
    os.set_inheritable(sock.fileno(), False)
    return Channel(sock)
