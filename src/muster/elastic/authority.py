"""The authority of one job as a pure state machine: events in, a document out.

Whoever runs it (the launcher here, the scheduler in a cluster) feeds it what agents say and the time, saves
its `record` before anybody sees the document, and publishes the document. It holds no socket and reads no
clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster.elastic.protocol import (
    Ack,
    Document,
    Member,
    Phase,
    Refused,
    Restore,
    Stale,
    Status,
    Vote,
    elect,
    shrink_order,
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the job asked for. Sizes are workers; the world is always a multiple of `multiple`."""

    job: str
    least: int = 1
    most: int = 1
    multiple: int = 1
    silence: float = 5.0  # an agent not heard for this long is lost
    settle: float = 0.3  # newcomers this close together join in one epoch
    patience: float = 10.0  # how long the start waits for the full size once the least is there

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.multiple < 1:
            raise ValueError(f"need 1 <= min ({self.least}) <= max ({self.most}) and multiple >= 1")
        if self.least % self.multiple or self.most % self.multiple:
            raise ValueError(f"min {self.least} and max {self.most} must be multiples of {self.multiple}")


@dataclass(frozen=True, slots=True)
class Record:
    """What must outlive the authority. Its version is the token of every compare-and-swap."""

    term: int = 0
    epoch: int = 0  # the highest ever proposed
    committed: int = 0
    members: tuple[Member, ...] = ()
    target: int | None = None
    done: bool = False


@dataclass(slots=True)
class Peer:
    status: Status
    heard: float
    since: float  # ready since


@dataclass(frozen=True, slots=True)
class Proposal:
    epoch: int
    members: tuple[Member, ...]
    planned: bool
    reason: str
    deadline: float | None = None


@dataclass(slots=True)
class Authority:
    terms: Terms
    record: Record
    started: float
    peers: dict[str, Peer] = field(default_factory=dict)
    proposal: Proposal | None = None
    acks: dict[str, Vote] = field(default_factory=dict)
    restore: Restore | None = None
    released: set[str] = field(default_factory=set)
    version: int = 0
    reason: str = ""
    deadline: float | None = None

    # -- what agents and the scheduler say -------------------------------------------------------------

    def hear(self, status: Status, now: float) -> None:
        """An agent's status: joins, heartbeats, deaths of workers, leaving, finishing are all of them."""
        known = self.peers.get(status.member.id)
        if known and status.member.life < known.status.member.life:
            raise Stale(f"{status.member.id}: life {status.member.life} is over")
        if status.member.id in self.released:
            return
        fresh = known is None or (status.ready and not known.status.ready)
        self.peers[status.member.id] = Peer(status, now, now if fresh or known is None else known.since)
        if self._matters(known.status if known else None, status):
            self.step(now)

    @staticmethod
    def _matters(old: Status | None, new: Status) -> bool:
        def key(s: Status) -> tuple[object, ...]:
            return (
                s.member,
                s.ready,
                s.trouble,
                s.leaving is None,
                s.finished,
                s.protected,
                s.failed,
                s.resumed,
            )

        return old is None or key(old) != key(new)

    def ack(self, who: str, ack: Ack, now: float) -> None:
        peer = self.peers.get(who)
        if self.proposal is None or ack.epoch != self.proposal.epoch:
            raise Stale(f"epoch {ack.epoch} is not being prepared")
        if peer is None or peer.status.member.life != ack.life:
            raise Stale(f"{who}: life {ack.life} is not the one that was asked")
        self.acks[who] = ack.vote
        self.step(now)

    def resize(self, target: int, deadline: float | None, now: float) -> float:
        """Ask for another size; returns the seconds it needs, or refuses when they do not fit."""
        need = self.need(target)
        if deadline is not None and now + need > deadline:
            raise Refused(f"{need:.1f} s are needed to get to {target} workers, {deadline - now:.1f} s were given")
        self.record = replace(self.record, target=max(0, target))
        self.deadline = deadline
        self.step(now)
        return need

    def need(self, target: int) -> float:
        """Seconds to reach a size without losing anything: memory while it runs on, disk when it stops."""
        seats = [self.peers[m.id].status for m in self.record.members if m.id in self.peers]
        if target >= self.terms.least:
            return self.terms.settle
        return self.terms.settle + max((s.flush for s in seats), default=0.0)

    # -- time -------------------------------------------------------------------------------------------

    def step(self, now: float) -> None:
        """Forget the silent, then propose or commit what follows from what is known."""
        if self.record.done:
            return
        for who in [k for k, p in self.peers.items() if now - p.heard > self.terms.silence]:
            del self.peers[who]
        if self._finished():
            self.record = replace(self.record, done=True)
            self._publish("every member has finished")
            return
        if self.proposal is not None:
            self._pursue(now)
        else:
            self._consider(now)
        self._release()

    def _finished(self) -> bool:
        """Members finish in the same step, so whoever is lost once one has finished had finished too."""
        seats = [self.peers[m.id].status for m in self.record.members if self._stands(m)]
        return bool(seats) and self.proposal is None and all(s.finished for s in seats)

    def _pursue(self, now: float) -> None:
        proposal = self.proposal
        assert proposal is not None
        needed = (*proposal.members, *(self.record.members if proposal.planned else ()))
        if broken := [m for m in needed if not self._stands(m)]:
            self._propose(now, False, f"{broken[0].id} was lost while epoch {proposal.epoch} was prepared")
        elif proposal.deadline is not None and now > proposal.deadline and self._missing():
            self._drop(self._missing(), now)
        elif not self._missing():
            self._commit()

    def _missing(self) -> set[str]:
        """Agents whose acknowledgement is still due: all that live, for each may hold what is needed."""
        return set(self.peers) - set(self.acks)

    def _drop(self, who: set[str], now: float) -> None:
        for one in who:
            self.peers.pop(one, None)
        self._propose(now, False, f"{min(who)} did not stop before the deadline")

    def _stands(self, member: Member) -> bool:
        """Whether the very life of the worker that was counted on is still there."""
        peer = self.peers.get(member.id)
        return bool(peer and peer.status.ready and peer.status.member.life == member.life)

    def _consider(self, now: float) -> None:
        seats = self.record.members
        epoch = self.record.committed
        if not self._heard_back(now):
            return
        if not seats:
            self._form(now)
            return
        if self.record.epoch > epoch:
            self._propose(now, False, f"a new authority takes up epoch {self.record.epoch}, which was not committed")
            return
        if self.restore is None and any(self.peers[m.id].status.resumed < epoch for m in seats if self._stands(m)):
            self._propose(now, False, f"a new authority does not know how epoch {epoch} began")
            return
        dead = [m for m in seats if not self._stands(m)]
        stuck = [m for m in seats if self._stands(m) and self.peers[m.id].status.trouble >= epoch > 0]
        if dead or stuck:
            self._propose(now, False, f"{(dead or stuck)[0].id} was lost")
        elif any(self.peers[m.id].status.finished for m in seats):
            return
        elif leaving := [m for m in seats if self.peers[m.id].status.leaving is not None]:
            self._propose(now, True, f"{leaving[0].id} leaves")
        elif self._wanted(now) != len(seats):
            self._propose(now, True, f"{len(seats)} to {self._wanted(now)} workers")

    def _heard_back(self, now: float) -> bool:
        """A new authority gives those it inherited the time to be heard before it calls them lost."""
        waiting = now - self.started <= self.terms.silence
        return not waiting or all(m.id in self.peers for m in self.record.members)

    def _form(self, now: float) -> None:
        size, full = self._wanted(now), self._ceiling()
        if size < self.terms.least:
            return
        first = min(p.since for p in self.peers.values() if p.status.ready)
        if size >= full or now - first >= self.terms.patience:
            self._propose(now, False, f"{size} workers are ready")

    def _ceiling(self) -> int:
        target = self.terms.most if self.record.target is None else min(self.record.target, self.terms.most)
        return target - target % self.terms.multiple

    def _wanted(self, now: float) -> int:
        """The size to have: newcomers count once no other has come for a while, seats always."""
        seats = {m.id for m in self.record.members}
        ready = {k: p for k, p in self.peers.items() if p.status.ready and p.status.leaving is None}
        fresh = [p for k, p in ready.items() if k not in seats]
        settled = all(now - p.since >= self.terms.settle for p in fresh) or not seats
        count = len(ready) if settled else len(ready) - len(fresh)
        count = min(count, self._ceiling())
        return count - count % self.terms.multiple

    # -- epochs -----------------------------------------------------------------------------------------

    def _propose(self, now: float, planned: bool, reason: str) -> None:
        members = self._seated()
        self.acks = {}
        epoch = self.record.epoch + 1
        self.record = replace(self.record, epoch=epoch)
        deadline = self.deadline
        if leaving := [p.status.leaving for p in self.peers.values() if p.status.leaving is not None]:
            deadline = min(now + min(leaving), deadline if deadline is not None else now + min(leaving))
        self.proposal = Proposal(epoch, members, planned, reason, deadline)
        self._publish(reason)
        if not self._missing():
            self._commit()

    def _seated(self) -> tuple[Member, ...]:
        """The next members in rank order: who stays keeps the seat, a replacement takes the lost one's."""
        able = {k: p for k, p in self.peers.items() if p.status.ready and p.status.leaving is None}
        spare = sorted((k for k in able if k not in {m.id for m in self.record.members}), key=self._age)
        seats = [able[m.id].status.member if m.id in able else None for m in self.record.members]
        size = min(len(able), self._ceiling())
        size -= size % self.terms.multiple
        seats += [None] * (size - len(seats))
        while sum(s is not None for s in seats) > size:
            seats.pop()
        for i, seat in enumerate(seats):
            if seat is None and spare and sum(s is not None for s in seats) < size:
                seats[i] = able[spare.pop(0)].status.member
        members = tuple(s for s in seats if s is not None)
        return members if len(members) >= max(self.terms.least, 1) else ()

    def _age(self, who: str) -> tuple[float, str]:
        return self.peers[who].since, who

    def _commit(self) -> None:
        proposal = self.proposal
        assert proposal is not None
        names = tuple(m.id for m in proposal.members)
        votes = {k: v for k, v in self.acks.items() if k in self.peers}
        addresses = {k: p.status.member.address for k, p in self.peers.items()}
        self.restore = elect(votes, addresses, names)
        self.record = replace(self.record, committed=proposal.epoch, members=proposal.members)
        self.proposal = None
        self._publish(proposal.reason)

    def _release(self) -> None:
        """Let go of those who leave once everything they held is safe without them."""
        seats = [self.peers.get(m.id) for m in self.record.members]
        if self.proposal is not None or any(p is None for p in seats):
            return
        names = {m.id for m in self.record.members}
        gone = {k for k, p in self.peers.items() if p.status.leaving is not None and k not in names}
        holders = [p for p in seats if p] or [self.peers[k] for k in gone]
        if gone and all(p.status.protected >= self.record.committed for p in holders):
            for who in gone:
                del self.peers[who]
            self.released |= gone
            self._publish(self.reason)

    def _publish(self, reason: str) -> None:
        self.reason = reason
        self.version += 1

    # -- what everybody sees ------------------------------------------------------------------------------

    def phase(self) -> Phase:
        if self.record.done:
            return Phase.DONE
        if self.proposal is not None:
            return Phase.PREPARE
        if self.record.committed and not self.record.members:
            return Phase.SUSPENDED
        return Phase.COMMIT if self.record.members else Phase.FORMING

    def document(self) -> Document:
        phase, p = self.phase(), self.proposal
        return Document(
            self.terms.job,
            self.record.term,
            self.version,
            p.epoch if p else self.record.committed,
            phase,
            p.members if p else self.record.members,
            bool(p and p.planned),
            self.reason,
            self.restore if phase in (Phase.COMMIT, Phase.SUSPENDED) else None,
            tuple(sorted(self.released)),
        )


def inherit(terms: Terms, record: Record, now: float) -> Authority:
    """A new authority over an old record: a new term, and a new epoch at the next change."""
    fresh = replace(record, term=record.term + 1)
    return Authority(terms, fresh, now, version=fresh.term << 32)


def summary(authority: Authority, speeds: Mapping[int, float]) -> dict[str, object]:
    """What the scheduler wants to know when it weighs this job against others."""
    seats = [authority.peers[m.id].status for m in authority.record.members if m.id in authority.peers]
    return {
        "phase": authority.phase().value,
        "epoch": authority.record.committed,
        "size": len(authority.record.members),
        "ready": sum(p.status.ready for p in authority.peers.values()),
        "step": max((s.step for s in seats), default=0),
        "last_snapshot": min((s.committed for s in seats), default=-1),
        "seconds_to_stop": authority.need(0),
        "shrink_order": list(shrink_order(authority.record.members)),
        "samples_per_second": {str(k): v for k, v in sorted(speeds.items())},
        "reason": authority.reason,
    }
