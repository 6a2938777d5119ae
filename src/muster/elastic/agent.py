"""The agent of one pod: owns the snapshot memory, starts and watches the worker, speaks for it.

It outlives the worker, so what the worker sealed survives a kill -9. One thread owns all state and handles
one event after the other; sockets, checksums and copies to other agents are on other threads and come back as
events. It needs no torch: it starts in a moment and takes little memory.
"""

import argparse
import json
import queue
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from muster.elastic.accounts import Books
from muster.elastic.arena import Arena
from muster.elastic.child import Child, Event, spawn
from muster.elastic.client import Line
from muster.elastic.crash import crash_point
from muster.elastic.durable import Flusher
from muster.elastic.keyvalue import KeyValue
from muster.elastic.ledger import Bucket, Ledger
from muster.elastic.lending import KINDS, Lending
from muster.elastic.options import Options
from muster.elastic.peer import Peers, PeerServer
from muster.elastic.protocol import (
    Ack,
    Document,
    Member,
    Phase,
    Shard,
    Source,
    Status,
    Vote,
    accepts,
    decode,
    encode,
)
from muster.elastic.replication import Replication
from muster.elastic.slots import abandoned, obsolete
from muster.elastic.wire import job_secret

TICK = 0.1
BUILDING = 10.0  # a worker that builds its model when it is told to stop has that long


@dataclass(slots=True)
class Agent:
    options: Options
    secret: bytes
    me: Member = field(init=False)
    events: "queue.SimpleQueue[Event]" = field(default_factory=queue.SimpleQueue)
    arena: Arena = field(default_factory=Arena)
    store: KeyValue = field(default_factory=KeyValue)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))
    active: Child | None = None
    spare: Child | None = None
    document: Document = field(default_factory=Document)
    epoch: int = 0  # the newest epoch heard of; older messages are refused
    own: set[Shard] = field(default_factory=set)  # sealed by this pod's worker, as against received
    status: Status = field(init=False)
    acked: int = 0
    entered: int = 0  # the newest epoch its worker was sent into
    crashes: int = 0
    done: bool = False
    flushed: int = -1
    peers: Peers = field(init=False)
    server: PeerServer = field(init=False)
    replication: Replication = field(init=False)
    lending: Lending = field(init=False)
    line: Line = field(init=False)
    books: Books = field(init=False)
    flusher: Flusher = field(init=False)
    code: int | None = None

    def __post_init__(self) -> None:
        o = self.options
        self.peers = Peers(self.secret)
        self.server = PeerServer(self.arena, self.store, self.secret, self._noted, lambda e: e < self.epoch)
        self.lending = Lending(self.arena, self._aside, lambda *e: self.events.put(("checked", e)))
        self.replication = Replication(self.peers, self.arena, o.replicas, lambda: self.epoch)
        name = f"{o.name}.{uuid.uuid4().hex[:6]}"
        self.me = Member(name, self.server.start(o.host), o.domain or name)
        self.status = Status(self.me)
        self.books = Books(name, Ledger(time.monotonic()))
        self.books.ledger.queued(o.queued)
        self.flusher = Flusher(o.store, self.arena, lambda *e: self.events.put(("flushed", e)))
        self.line = Line(
            o.authority,
            self.secret,
            o.job,
            lambda: (self.status, self.books.report()),
            lambda d: self.events.put(("document", d)),
            max(0.5, o.silence / 3),
            lambda why: self.events.put(("refused", why)),
        )

    def _noted(self, head: dict[str, Any]) -> None:
        self.events.put(("note", head))

    def _aside(self, work: Callable[..., None], *what: Any) -> None:
        """Do something on another thread; if it fails the agent does, loudly."""
        self.pool.submit(work, *what).add_done_callback(self._checked_up)

    def _checked_up(self, done: "Future[None]") -> None:
        if error := done.exception():
            self.events.put(("failed", error))

    def _on_failed(self, error: BaseException) -> None:
        raise error

    # -- the loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        signal.signal(signal.SIGTERM, lambda *_: self.events.put(("term", None)))
        self.active = self._spawn()
        self.line.start()
        while self.code is None:
            try:
                kind, what = self.events.get(timeout=TICK)
            except queue.Empty:
                kind, what = "tick", None
            getattr(self, f"_on_{kind}")(what)
            self._watch()
        for child in (self.active, self.spare):
            if child:
                child.end()
        self.flusher.finish(self.options.grace)
        self.line.tell()
        return self.code

    def _spawn(self) -> Child:
        o = self.options
        extra = {"MUSTER_ELASTIC_STORE": o.store, "MUSTER_ELASTIC_HOST": o.host}
        return spawn(list(o.command), extra, self.events)

    def _say(self, **change: Any) -> None:
        self.status = replace(self.status, **change)
        self.line.tell()

    def _on_tick(self, _: None) -> None:
        pass

    def _watch(self) -> None:
        """Workers that no longer run, and workers that did not let go of a broken collective in time."""
        now, child = time.monotonic(), self.active
        if self.done and (child is None or child.code is not None or not self.status.finished):
            self.code = 0
        if (child and child.ready and now - child.heard > self.options.silence) or (child and self._stuck(child, now)):
            child.end()
        self.lending.grant()
        self.status = replace(self.status, step=self.books.step, speed=self.books.speed, skipped=self.books.skipped)

    def _stuck(self, child: Child, now: float) -> bool:
        """Whether it was told to let go of a broken collective, and had time to, and did not."""
        if not child.ready or child.parked or self.document.planned or child.asked <= max(child.epoch, self.entered):
            return False
        limit = self.options.release + 2 * self.books.step_seconds if child.epoch else BUILDING
        return now - child.asked_at > limit

    # -- the worker -----------------------------------------------------------------------------------

    def _on_worker(self, what: tuple[Child, dict[str, Any]]) -> None:
        child, message = what
        kind = message["kind"]
        if child is not self.active and kind != "ready":
            return
        if kind in KINDS:
            getattr(self.lending, kind)(child, message)
        else:
            getattr(self, f"_worker_{kind}")(child, message)

    def _worker_ready(self, child: Child, _: dict[str, Any]) -> None:
        """It has imported everything and waits inside attach()."""
        child.ready = child.parked = True
        if child is self.active:
            self._say(ready=True)
            self.books.switch(Bucket.IDLE)
            if self.options.spare and self.spare is None:
                self.spare = self._spawn()
        self._follow()

    def _worker_parked(self, child: Child, message: dict[str, Any]) -> None:
        child.parked, child.live, child.whole = True, message["live"], message["whole"]
        self.books.switch(Bucket.RECONFIGURE)
        if message["trouble"] and self.document.epoch <= child.epoch:
            self._say(trouble=child.epoch)
        self._follow()

    def _on_checked(self, what: tuple[dict[str, Any], tuple[int, ...]]) -> None:
        message, sums = what
        self.lending.checking.discard(message["slot"])
        shard = decode(Shard, message["shard"])
        self.arena.seal(message["slot"], shard, message["data"], message["manifest"], sums)
        self.own = {s for s in self.own if s in self.arena.holdings} | ({shard} if not shard.live else set())
        crash_point("sealed")
        self._follow()
        members = self.document.members
        if self.document.phase is Phase.COMMIT and shard.epoch == self.document.epoch and not shard.live:
            self._aside(self.replication.replicate, shard, members)

    def _worker_step(self, _: Child, message: dict[str, Any]) -> None:
        self.books.stepped(message)

    def _worker_bucket(self, _: Child, message: dict[str, Any]) -> None:
        self.books.switch(Bucket(message["bucket"]))

    def _worker_resumed(self, child: Child, message: dict[str, Any]) -> None:
        child.parked, child.epoch = False, message["epoch"]
        self.crashes = 0
        self._say(resumed=message["epoch"])

    def _worker_trouble(self, _: Child, message: dict[str, Any]) -> None:
        """It could not continue in this epoch: ask for another one."""
        self._say(trouble=max(message["epoch"], self.status.trouble))

    def _worker_finished(self, _: Child, message: dict[str, Any]) -> None:
        self.books.switch(Bucket.IDLE)
        if self.options.durable_every:
            self._flush(message["step"])
        self._say(finished=True)

    def _on_exit(self, child: Child) -> None:
        if child is self.spare:
            self.spare = None
            return
        if child is not self.active:
            return
        if child.code == 0:
            self._say(finished=True)
            return
        self._reclaim(child)
        if child.code is not None and child.code > 0:
            self.crashes += 1
        if self.crashes >= self.options.attempts or self.status.leaving is not None:
            self._say(ready=False, failed=f"the worker ended with code {child.code}")
            self.code = 1 if self.status.leaving is None else 0
            return
        self._renew()

    def _reclaim(self, child: Child) -> None:
        self.lending.take_back(child)
        self.books.switch(Bucket.RECONFIGURE if self._seated() else Bucket.STARTUP)

    def _renew(self) -> None:
        """The next life: the spare if there is one, which is ready at once, else a new process."""
        self.me = replace(self.me, life=self.me.life + 1)
        self.active, self.spare = (self.spare, None) if self.spare and self.spare.ready else (self._spawn(), self.spare)
        ready = self.active.ready
        self._say(member=self.me, ready=ready, finished=False)
        if ready and self.options.spare:
            self.spare = self._spawn()

    def _seated(self) -> bool:
        return any(m.id == self.me.id for m in self.document.members)

    # -- the authority ----------------------------------------------------------------------------------

    def _on_document(self, document: Document) -> None:
        if not accepts(self.epoch, self.document.term, document):
            return
        self.epoch = max(self.epoch, document.epoch)
        self.store.open(document.epoch)
        self.document = document
        if self.me.id in document.released:
            self.code = 0
        elif document.phase is Phase.DONE:
            self.done = True
        elif document.phase is Phase.PREPARE:
            self._ask()
        elif document.phase is Phase.COMMIT:
            self._commit()
        elif document.phase is Phase.SUSPENDED and document.restore:
            self._flush(document.restore.step)
        self._follow()

    def _ask(self) -> None:
        child, d = self.active, self.document
        if child and child.asked < d.epoch:
            child.asked, child.asked_at = d.epoch, time.monotonic()
            child.channel.send("prepare", epoch=d.epoch, planned=d.planned)

    def _follow(self) -> None:
        """Acknowledge once the worker stands still and all it filled is sealed."""
        d, child = self.document, self.active
        if d.phase is not Phase.PREPARE or self.acked >= d.epoch or child is None:
            return
        if (child.ready and not child.parked) or self.lending.checking:
            return
        vote = Vote(child.live if child.ready else None, child.whole, tuple(self.arena.held()))
        self.acked = d.epoch
        crash_point("ack")
        self.line.tell(Ack(d.epoch, self.me.life, vote))

    def _commit(self) -> None:
        d, child = self.document, self.active
        crash_point("commit")
        if d.restore is None or child is None:
            return
        if d.restore.source is not Source.STORE:
            for shard in abandoned(self.arena.held(), d.epoch, d.restore.step):
                self.arena.drop(shard)
        self.replication.copies.clear()
        seats = [m.id for m in d.members]
        if self.me.id in seats and d.members[seats.index(self.me.id)].life == self.me.life:
            if self.entered < d.epoch and child.ready:
                self.entered = child.asked = d.epoch
                self.books.restored(d.restore.step if d.restore.source is not Source.STORE else -1)
                child.parked, child.epoch = False, 0
                child.channel.send("commit", document=encode(d), me=self.me.id)
        elif child.epoch and child.epoch < d.epoch:
            self._leave_world(child)

    def _leave_world(self, child: Child) -> None:
        """No longer a member: a worker that stands still waits to join again, any other one starts over."""
        child.epoch = 0
        self.books.switch(Bucket.IDLE)
        if not child.parked and self.status.leaving is None:
            child.end()

    # -- other agents -----------------------------------------------------------------------------------

    def _on_note(self, head: dict[str, Any]) -> None:
        shard = decode(Shard, head["shard"])
        if shard.epoch != self.document.epoch:
            return
        if head["do"] == "sealed":
            self._count(shard, head["copies"])
        else:
            self._committed(shard)

    def _count(self, shard: Shard, copies: int) -> None:
        """As the first member's agent: tell all once every part of a step is on enough agents."""
        members = self.document.members
        if self.replication.committed(shard, copies, members):
            note = {"do": "committed", "epoch": shard.epoch, "shard": asdict(shard)}
            for member in members:
                self._aside(self.replication.note, member, note)

    def _committed(self, shard: Shard) -> None:
        for old in obsolete(self.arena.held(), shard.epoch, shard.step):
            self.arena.drop(old)
        self.books.ledger.committed(shard.step)
        change: dict[str, Any] = {"committed": shard.step}
        if self.active:
            self.active.channel.send("committed", step=shard.step)
        every = self.options.durable_every
        if every and shard.step // every > max(self.flushed, 0) // every:
            self._flush(shard.step)
        self.lending.grant()
        if self.status.protected < shard.epoch:
            self._say(protected=shard.epoch, **change)
        else:
            self.status = replace(self.status, **change)

    def _flush(self, step: int) -> None:
        """Bring this agent's own part of a step to the durable store, in the background."""
        restore = self.document.restore
        cut = restore.shard if restore and self.document.phase is Phase.SUSPENDED else None
        mine = [s for s in self.own if s.step == step and s in self.arena.holdings]
        mine = [s for s in mine if cut is None or (s.epoch, s.of) == (cut.epoch, cut.of)]
        if self.options.store and mine and step > self.flushed:
            self.flushed = step
            self.flusher.save(max(mine))
        elif self.document.phase is Phase.SUSPENDED:
            self._say(protected=self.document.epoch)

    def _on_flushed(self, what: tuple[int, float]) -> None:
        self.status = replace(self.status, flush=what[1])
        if self.document.phase is Phase.SUSPENDED:
            self._say(protected=self.document.epoch)

    def _on_term(self, _: None) -> None:
        """The pod is being stopped: leave in good order, within the grace it has."""
        if self.status.leaving is not None:
            return
        if not self._seated():
            self.code = 0
        self._say(leaving=self.options.grace)
        late = threading.Timer(self.options.grace, lambda: self.events.put(("late", None)))
        late.daemon = True
        late.start()

    def _on_late(self, _: None) -> None:
        self.code = 0

    def _on_refused(self, why: str) -> None:
        print(f"muster.elastic agent {self.me.id}: {why}", file=sys.stderr, flush=True)  # noqa: T201
        self.code = 1


def parse(argv: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m muster.elastic.agent")
    parser.add_argument("--options", required=True, help="the agent's options as JSON")
    data = json.loads(parser.parse_args(argv).options)
    return decode(Options, data)


if __name__ == "__main__":
    sys.exit(Agent(parse(sys.argv[1:]), job_secret()).run())
