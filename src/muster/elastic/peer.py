"""Agents among themselves: read and store shards, pass notes, hold the rendezvous store.

A thread per connection; every connection starts with the proof of the job's secret. Reading a shard takes
byte ranges, so that whoever re-shards fetches exactly the bytes it needs.
"""

import queue
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from muster.elastic.arena import BLOCK, Arena, manifest_of, sums_of
from muster.elastic.keyvalue import KeyValue
from muster.elastic.protocol import Refused, Shard, Stale, decode
from muster.elastic.slots import SlotError
from muster.elastic.wire import Wire, WireError, answer, connect


@dataclass(slots=True)
class PeerServer:
    arena: Arena
    store: KeyValue
    secret: bytes
    note: Callable[[dict[str, Any]], None]
    stale: Callable[[int], bool]
    listener: socket.socket = field(init=False)
    verified: set[Shard] = field(default_factory=set)

    def start(self, host: str) -> str:
        self.listener = socket.create_server((host, 0), backlog=256)
        threading.Thread(target=self._accept, daemon=True, name="peers").start()
        return f"{host}:{self.listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            wire = answer(sock, self.secret)
            while True:
                self._one(wire, *wire.head())
        except (OSError, ValueError, KeyError):
            sock.close()

    def _one(self, wire: Wire, head: dict[str, Any], size: int) -> None:
        try:
            handle = getattr(self, f"_on_{head['op']}", None)
            if handle is None:
                raise WireError(f"unknown operation {head['op']!r}")
            if size and head["op"] != "put":
                raise WireError("a payload nobody asked for")
            handle(wire, head, size)
        except (SlotError, Refused, OSError) as error:
            if size or isinstance(error, ConnectionError):
                raise WireError(str(error)) from error
            wire.send({"error": str(error)})

    def _on_read(self, wire: Wire, head: dict[str, Any], _size: int) -> None:
        with self.arena.reading(decode(Shard, head["shard"])) as (holding, view):
            self._verify(holding.shard, view[: holding.data + holding.manifest], holding.sums)
            wire.send({}, [view[at : at + length] for at, length in head["ranges"]])

    def _on_manifest(self, wire: Wire, head: dict[str, Any], _size: int) -> None:
        with self.arena.reading(decode(Shard, head["shard"])) as (holding, view):
            wire.send({"manifest": manifest_of(view, holding)})

    def _on_held(self, wire: Wire, _head: dict[str, Any], _size: int) -> None:
        wire.send({"shards": [asdict(s) for s in self.arena.held()]})

    def _verify(self, shard: Shard, view: memoryview, sums: Sequence[int]) -> None:
        """Once before a shard is first given out: memory that rotted is as bad as a disk that did."""
        if shard in self.verified:
            return
        if sums_of(view) != tuple(sums):
            self.arena.drop(shard)
            raise SlotError(f"{shard} is damaged in memory and was dropped")
        self.verified.add(shard)

    def _on_put(self, wire: Wire, head: dict[str, Any], size: int) -> None:
        shard = decode(Shard, head["shard"])
        slot = self.arena.grant(size, lasting=False)
        assert slot is not None
        try:
            view = self.arena.writing(slot)[:size]
            wire.take(view, head["crc"])
            damaged = sums_of(view) != tuple(head["sums"])
            view.release()
        except BaseException:
            self.arena.abandon(slot)
            raise
        if damaged or self.stale(shard.epoch):
            self.arena.abandon(slot)
            wire.send({"error": "damaged on the way" if damaged else f"epoch {shard.epoch} is over"})
            return
        self.arena.seal(slot, shard, head["data"], head["manifest"], head["sums"])
        wire.send({})

    def _on_note(self, wire: Wire, head: dict[str, Any], _size: int) -> None:
        if self.stale(head["epoch"]):
            raise Stale(f"epoch {head['epoch']} is over")
        self.note(head)
        wire.send({})

    def _on_kv(self, wire: Wire, head: dict[str, Any], _size: int) -> None:
        epoch, store = head["epoch"], self.store
        match head["do"]:
            case "set":
                store.set(epoch, head["key"], head["value"])
                wire.send({})
            case "add":
                wire.send({"value": store.add(epoch, head["key"], head["value"])})
            case "wait":
                wire.send({"values": store.wait(epoch, head["keys"], head["seconds"])})
            case "has":
                wire.send({"value": store.has(epoch, head["keys"])})
            case "delete":
                wire.send({"value": store.delete(epoch, head["key"])})


@dataclass(slots=True)
class Peers:
    """Connections to other agents, kept for the next call; one call per connection at a time."""

    secret: bytes
    idle: dict[str, queue.SimpleQueue[Wire]] = field(default_factory=dict)

    def call(self, address: str, head: dict[str, Any], payload: Sequence[memoryview | bytes] = ()) -> dict[str, Any]:
        wire = self._take(address)
        try:
            result = wire.call(head, payload)
        except BaseException:
            wire.close()
            raise
        self._keep(address, wire)
        return result

    def fetch(self, address: str, head: dict[str, Any], into: memoryview) -> None:
        wire = self._take(address)
        try:
            wire.fetch(head, into)
        except BaseException:
            wire.close()
            raise
        self._keep(address, wire)

    def put(self, arena: Arena, shard: Shard, address: str) -> None:
        """Copy a sealed shard into another agent's memory."""
        with arena.reading(shard) as (holding, view):
            size = holding.data + holding.manifest
            head = {
                "op": "put",
                "shard": asdict(shard),
                "data": holding.data,
                "manifest": holding.manifest,
                "sums": list(holding.sums),
            }
            self.call(address, head, [view[at : min(at + BLOCK, size)] for at in range(0, size, BLOCK)])

    def close(self) -> None:
        for waiting in self.idle.values():
            while not waiting.empty():
                waiting.get().close()

    def _take(self, address: str) -> Wire:
        try:
            return self.idle.setdefault(address, queue.SimpleQueue()).get_nowait()
        except queue.Empty:
            return connect(address, self.secret)

    def _keep(self, address: str, wire: Wire) -> None:
        self.idle[address].put(wire)
