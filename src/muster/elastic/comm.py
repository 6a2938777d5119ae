"""Process groups that live for one epoch and can be broken from outside.

Groups are formed through the agent's rendezvous store, torn down, and formed anew without restarting anybody.
A collective that waits for a dead or frozen peer does not end by itself: neither abort nor destroy releases a
gloo rank that is not the dead one's neighbour. What does is shutting down the sockets the group has
connected, from another thread. They are found by their ports: a group listens on ports of its own, and every
member publishes them.
"""

import json
import os
import socket
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store

from muster.elastic.wire import Wire, WireError, connect

FOREVER = timedelta(days=7)  # members decide when a peer is lost, not a timer


class Broken(RuntimeError):
    """The group of this epoch was released."""


class AgentStore(Store):
    """torch's store interface over the rendezvous store an agent holds for one epoch."""

    def __init__(self, address: str, secret: bytes, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch
        self.wire: Wire = connect(address, secret)
        self.wire.sock.settimeout(None)
        self.lock = threading.Lock()

    def _call(self, do: str, **more: Any) -> dict[str, Any]:
        with self.lock:
            return self.wire.call({"op": "kv", "do": do, "epoch": self.epoch} | more)

    def set(self, key: str, value: Any) -> None:
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._call("set", key=key, value=data.decode("latin-1"))

    def get(self, key: str) -> bytes:
        values = self._wait([key], FOREVER)
        return values[0].encode("latin-1")

    def add(self, key: str, value: int) -> int:
        return int(self._call("add", key=key, value=value)["value"])

    def wait(self, keys: list[str], timeout: timedelta = FOREVER) -> None:
        self._wait(keys, timeout)

    def _wait(self, keys: list[str], timeout: timedelta) -> list[str]:
        values = self._call("wait", keys=list(keys), seconds=timeout.total_seconds())["values"]
        if values is None:
            raise WireError(f"{keys} did not appear within {timeout}")
        return list(values)

    def check(self, keys: list[str]) -> bool:
        return bool(self._call("has", keys=list(keys))["value"])

    def delete_key(self, key: str) -> bool:
        return bool(self._call("delete", key=key)["value"])

    def set_timeout(self, timeout: timedelta) -> None:
        """Waiting ends when the epoch does."""

    def clone(self) -> "AgentStore":
        return self

    def close(self) -> None:
        self.wire.close()


@dataclass(frozen=True, slots=True)
class Connection:
    fd: int
    inode: int
    listening: bool
    here: int
    there: int | None


def connections() -> list[Connection]:
    """Every TCP socket of this process."""
    found = []
    for name in (p.name for p in Path("/proc/self/fd").iterdir()):
        try:
            fd = os.dup(int(name))
        except OSError:
            continue
        try:
            with socket.socket(fileno=fd) as sock:
                if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
                    found.append(_described(int(name), sock))
        except OSError:
            os.close(fd) if _open(fd) else None
    return found


def _open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _described(fd: int, sock: socket.socket) -> Connection:
    listening = bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    try:
        there = sock.getpeername()[1]
    except OSError:
        there = None
    return Connection(fd, os.fstat(sock.fileno()).st_ino, listening, sock.getsockname()[1], there)


def shut(found: list[Connection]) -> None:
    for one in found:
        try:
            with socket.socket(fileno=os.dup(one.fd)) as sock:
                if os.fstat(sock.fileno()).st_ino == one.inode:
                    sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


@dataclass(slots=True)
class Comm:
    """The default process group of one epoch."""

    device: str = "cpu"
    epoch: int = 0
    rank: int = 0
    world: int = 1
    store: AgentStore | None = None
    before: set[int] = field(default_factory=set)
    ports: set[int] | None = None  # of this epoch's groups, everywhere; None while they are being formed
    released: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def form(self, epoch: int, rank: int, world: int, address: str, secret: bytes) -> None:
        with self.lock:
            self.epoch, self.rank, self.world = epoch, rank, world
            self.released, self.ports = False, None
        if world > 1 and address:
            self.store = AgentStore(address, secret, epoch)
        self.before = {c.inode for c in connections()}
        store = self.store or HashStore()
        dist.init_process_group(
            self.backend(),
            store=PrefixStore(f"e{epoch}", store),
            rank=rank,
            world_size=world,
            timeout=FOREVER,
        )

    def backend(self) -> str:
        return "gloo" if self.device == "cpu" else f"cpu:gloo,{self.device}:nccl"

    def formed(self) -> None:
        """All groups exist, those a model's mesh made included: learn everybody's ports."""
        if self.store is None:
            self.ports = set()
            return
        mine = [c.here for c in connections() if c.listening and c.inode not in self.before]
        self.store.set(f"ports/{self.rank}", json.dumps(mine))
        everyone = [json.loads(self.store.get(f"ports/{r}")) for r in range(self.world)]
        with self.lock:
            self.ports = {p for ports in everyone for p in ports}
        if self.released:
            raise Broken(f"epoch {self.epoch} was released while it was formed")

    def release(self, before: int) -> None:
        """From another thread: end every wait in the groups of an epoch older than `before`.

        Called again until they are gone: a group that is being formed may still connect.
        """
        with self.lock:
            if not 0 < self.epoch < before:
                return
            self.released = True
            if self.store is not None:
                self.store.close()
            shut([c for c in connections() if self._ours(c)])
        self._abort_device()

    def _ours(self, c: Connection) -> bool:
        if c.inode in self.before or c.listening or c.there is None:
            return False
        return self.ports is None or c.here in self.ports or c.there in self.ports

    def _abort_device(self) -> None:
        """NCCL is ended by abort; on gloo alone there is nothing to do here."""
        if self.device == "cpu" or not dist.is_initialized():
            return
        backend = dist.group.WORLD._get_backend(torch.device(self.device))  # type: ignore[union-attr]
        if hasattr(backend, "abort"):
            backend.abort()

    def close(self) -> None:
        with self.lock:
            self.epoch = 0
            if self.store is not None:
                self.store.close()
                self.store = None
        if dist.is_initialized():
            dist.destroy_process_group()
            forget_meshes()


def forget_meshes() -> None:
    """DTensor remembers results by mesh, and meshes of the same ranks compare equal though their groups
    are gone.
    """
    from torch.distributed.tensor import debug

    debug._clear_sharding_prop_cache()  # type: ignore[no-untyped-call]


def broken_by_peer(error: BaseException) -> bool:
    """Whether an error in a step means that another member is gone, rather than a mistake in the script."""
    if isinstance(error, Broken | ConnectionError | TimeoutError | WireError):
        return True
    if isinstance(error, dist.DistBackendError | dist.DistNetworkError):
        return True
    text = str(error)
    words = ("gloo", "Connection closed", "Connection reset", "NCCL", "ProcessGroup")
    return isinstance(error, RuntimeError) and any(w in text for w in words)
