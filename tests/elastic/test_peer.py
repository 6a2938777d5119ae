"""Agents among themselves: strangers and damage are refused, shards arrive as they were sealed."""

import socket
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from muster.elastic.arena import Arena, Sums, sums_of
from muster.elastic.keyvalue import KeyValue, Void
from muster.elastic.peer import Peers, PeerServer
from muster.elastic.protocol import Shard
from muster.elastic.slots import SlotError
from muster.elastic.wire import WireError, connect

SECRET = b"s" * 32
SHARD = Shard(3, 5, 0, 1)


class Agent:
    """The memory and the server of one agent."""

    def __init__(self) -> None:
        self.arena, self.epoch = Arena(), 5
        self.notes: list[dict[str, Any]] = []
        self.server = PeerServer(self.arena, KeyValue(), SECRET, self.notes.append, lambda e: e < self.epoch)
        self.address = self.server.start("127.0.0.1")

    def seal(self, data: bytes) -> None:
        slot = self.arena.grant(len(data), lasting=False)
        assert slot is not None
        with self.arena.writing(slot) as view:
            view[: len(data)] = data
            self.arena.seal(slot, SHARD, len(data), 0, sums_of(view[: len(data)]))


@pytest.fixture
def agents() -> Iterator[tuple[Agent, Agent, Peers]]:
    one, other, peers = Agent(), Agent(), Peers(SECRET)
    yield one, other, peers
    peers.close()
    for agent in (one, other):
        agent.server.listener.close()


def test_a_shard_is_copied_and_read_in_ranges(agents: tuple[Agent, Agent, Peers]) -> None:
    one, other, peers = agents
    one.seal(bytes(range(256)) * 4)
    peers.put(one.arena, SHARD, other.address)
    into = bytearray(7)
    head = {"op": "read", "shard": asdict(SHARD), "ranges": [[10, 3], [300, 4]]}
    peers.fetch(other.address, head, memoryview(into))
    assert bytes(into) == bytes([10, 11, 12, 44, 45, 46, 47])


def test_memory_that_rots_is_found_and_dropped(agents: tuple[Agent, Agent, Peers]) -> None:
    one, _, peers = agents
    one.seal(b"x" * 100)
    one.arena.writing(one.arena.holdings[SHARD].slot)[50] ^= 1
    with pytest.raises(WireError, match="damaged in memory"):
        peers.call(one.address, {"op": "read", "shard": asdict(SHARD), "ranges": [[0, 1]]})
    assert one.arena.held() == []


def test_strangers_are_refused(agents: tuple[Agent, Agent, Peers]) -> None:
    with pytest.raises(WireError):
        connect(agents[0].address, b"another secret, just as long")


def test_a_stale_epoch_is_refused(agents: tuple[Agent, Agent, Peers]) -> None:
    one, other, peers = agents
    one.seal(b"y" * 10)
    other.epoch = 6
    with pytest.raises(WireError, match="epoch 5 is over"):
        peers.put(one.arena, SHARD, other.address)
    with pytest.raises(WireError, match="epoch 5 is over"):
        peers.call(other.address, {"op": "note", "epoch": 5})
    peers.call(other.address, {"op": "note", "epoch": 6})
    assert [n["epoch"] for n in other.notes] == [6]


def test_what_is_not_held_or_not_known_is_an_answer(agents: tuple[Agent, Agent, Peers]) -> None:
    _, other, peers = agents
    with pytest.raises(WireError, match="not held here"):
        peers.call(other.address, {"op": "manifest", "shard": asdict(SHARD)})
    with pytest.raises(WireError, match="unknown operation"):
        peers.call(other.address, {"op": "dance"})


def test_a_shard_that_is_read_outlives_its_dropping(agents: tuple[Agent, Agent, Peers]) -> None:
    one, _, _ = agents
    one.seal(b"z" * 10)
    with one.arena.reading(SHARD) as (_, view):
        one.arena.drop(SHARD)
        assert bytes(view[:10]) == b"z" * 10
    with pytest.raises(SlotError, match="not held"), one.arena.reading(SHARD):
        pass
    assert one.arena.bytes() == 0


def test_sums_while_filling_are_the_sums_after() -> None:
    data = memoryview(bytes(range(256)) * (80 << 10))
    running = Sums(data[:])
    for end in (1, 9 << 20, 12 << 20):
        running.landed(end)
    assert running.finish(len(data)) == sums_of(data)


def test_a_new_epoch_lets_those_who_wait_in_the_old_one_go() -> None:
    store = KeyValue()
    store.set(1, "k", "v")
    assert store.wait(1, ["k"], 0.0) == ["v"]
    assert store.wait(1, ["other"], 0.0) is None
    assert (store.add(1, "n", 2), store.add(1, "n", 3)) == (2, 5)
    assert store.has(1, ["n"]) and store.delete(1, "n") and not store.delete(1, "n")
    store.open(2)
    with pytest.raises(Void, match="epoch 1 is over"):
        store.wait(1, ["k"], 5.0)
    assert not store.has(3, ["k"]), "a member may know of a newer epoch first"


def test_a_connection_that_says_nothing_harms_nobody(agents: tuple[Agent, Agent, Peers]) -> None:
    one, other, peers = agents
    host, port = one.address.split(":")
    with socket.create_connection((host, int(port))):
        peers.call(one.address, {"op": "held"})
    assert peers.call(other.address, {"op": "held"}) == {"shards": [], "crc": 0}
