"""A whole job in miniature: simulated pods around the very modules that agents import, for histories by the
thousand.

A model is the list of windows it was trained on, so that a mix of steps, a lost sample or a cursor that moved
without its model shows at once.
"""

from dataclasses import dataclass, field, replace

from muster.elastic.authority import Authority, Record, Terms, inherit
from muster.elastic.ledger import Bucket, Ledger
from muster.elastic.order import Cursor, Window, window
from muster.elastic.protocol import (
    Ack,
    Document,
    Member,
    Phase,
    Refused,
    Restore,
    Shard,
    Source,
    Stale,
    Status,
    Vote,
    accepts,
    protected_by,
)
from muster.elastic.slots import abandoned, complete, obsolete

SAMPLES, BATCH = 23, 4
TERMS = Terms("job", least=1, most=4, silence=3.0, settle=0.0, patience=0.5)


@dataclass(frozen=True)
class Model:
    """What training made of the samples so far, and the position in the data that goes with it."""

    seen: tuple[tuple[int, int, int], ...] = ()
    cursor: Cursor = field(default_factory=Cursor)

    @property
    def step(self) -> int:
        return len(self.seen)

    def trained(self, step: Window) -> "Model":
        return Model((*self.seen, (step.turn, step.start, step.stop)), step.after)


@dataclass
class Pod:
    id: str
    domain: str
    life: int = 0
    ready: bool = False
    alive: bool = True
    frozen: bool = False
    cut_off: bool = False
    worker_frozen: bool = False
    leaving: bool = False
    parked: bool = True
    model: Model | None = None  # None: never built, or torn
    epoch: int = 0  # training in
    seen: Document = field(default_factory=Document)
    acked: int = 0
    entered: int = 0
    trouble: int = 0
    held: dict[Shard, Model] = field(default_factory=dict)
    protected: int = 0
    ledger: Ledger = field(default_factory=lambda: Ledger(0.0))

    @property
    def member(self) -> Member:
        return Member(self.id, f"{self.id}:1", self.domain, self.life)

    def status(self) -> Status:
        leaving = 5.0 if self.leaving else None
        return Status(
            self.member,
            self.ready,
            leaving=leaving,
            protected=self.protected,
            resumed=self.epoch,
            trouble=self.trouble,
        )


class ViolationError(AssertionError):
    pass


@dataclass
class World:
    whole: bool
    replicas: int
    now: float = 0.0
    record: Record = field(default_factory=Record)
    authority: Authority | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    born: int = 0
    copies: dict[Shard, int] = field(default_factory=dict)
    epochs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    highest: int = 0
    safe: int = -1  # the newest step known to be on enough agents
    lost: set[str] = field(default_factory=set)  # failure domains lost since then
    released: set[str] = field(default_factory=set)
    restored: list[Restore] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start_authority()

    # -- the authority, its record, its rivals -------------------------------------------------------

    def start_authority(self) -> None:
        rival = self.authority
        self.authority = inherit(TERMS, self.record, self.now)
        self.record = self.authority.record
        if rival is not None and rival.record != self.record:
            assert rival.record.term < self.record.term, "the old one can no longer swap the record"

    def publish(self) -> Document | None:
        a = self.authority
        if a is None:
            return None
        self.record = a.record
        document = a.document()
        if document.phase is Phase.COMMIT:
            if document.epoch < self.highest:
                raise ViolationError(f"epoch went back from {self.highest} to {document.epoch}")
            self.highest = document.epoch
            names = tuple(m.id for m in document.members)
            if self.epochs.setdefault(document.epoch, names) != names:
                raise ViolationError(f"epoch {document.epoch} was committed twice")
        return document

    # -- one round: everybody who can speaks, everybody who can hears -----------------------------------

    def reachable(self) -> list[Pod]:
        return [p for p in self.pods.values() if p.alive and not p.frozen and not p.cut_off]

    def talk(self, seconds: float = 0.5) -> None:
        self.now += seconds
        if self.authority is None:
            return
        for pod in self.reachable():
            if pod.id not in self.released:
                self.speak(pod)
        self.authority.step(self.now)
        document = self.publish()
        assert document is not None
        for pod in self.reachable():
            self.hear(pod, document)

    def speak(self, pod: Pod) -> None:
        assert self.authority is not None
        try:
            self.authority.hear(pod.status(), self.now)
        except Stale:
            return
        d = pod.seen
        if d.phase is Phase.PREPARE and pod.acked < d.epoch and (pod.parked or not pod.ready):
            live = pod.model.step if pod.model is not None and pod.ready else None
            vote = Vote(live, self.whole, tuple(pod.held))
            try:
                self.authority.ack(pod.id, Ack(d.epoch, pod.life, vote), self.now)
                pod.acked = d.epoch
            except Stale:
                pass

    def hear(self, pod: Pod, document: Document) -> None:
        if not accepts(pod.seen.epoch, pod.seen.term, document) or document == pod.seen:
            return
        pod.seen = document
        if pod.id in document.released:
            self.depart(pod)
        elif document.phase is Phase.PREPARE:
            self.prepare(pod, document)
        elif document.phase is Phase.COMMIT:
            self.commit(pod, document)

    def depart(self, pod: Pod) -> None:
        if not pod.leaving:
            raise ViolationError(f"{pod.id} was let go without asking")
        self.released.add(pod.id)
        pod.alive = False

    def prepare(self, pod: Pod, document: Document) -> None:
        """Broken collectives are released at once; a planned change stops at a boundary (see `step`)."""
        if not document.planned or pod.epoch == 0:
            self.park(pod)

    def park(self, pod: Pod) -> None:
        if not pod.worker_frozen:
            pod.parked = True
            pod.ledger.switch(self.now, Bucket.RECONFIGURE)

    def commit(self, pod: Pod, document: Document) -> None:
        restore = document.restore
        if restore is None or pod.entered >= document.epoch:
            return
        if restore.source is not Source.STORE:
            for shard in abandoned(list(pod.held), document.epoch, restore.step):
                del pod.held[shard]
        if pod.member not in document.members:
            pod.epoch = 0
            return
        pod.entered = document.epoch
        self.check_promise(restore, document)
        self.restored.append(restore)
        model = self.restore(pod, restore, document)
        if model is None:
            pod.model, pod.parked, pod.trouble = None, True, document.epoch
            return
        if model.cursor != replay(model):
            raise ViolationError(f"cursor {model.cursor} does not belong to the model {model.seen}")
        pod.model, pod.epoch, pod.parked = model, document.epoch, False
        pod.ledger.rollback(model.step)
        pod.ledger.switch(self.now, Bucket.USEFUL)

    def restore(self, pod: Pod, restore: Restore, document: Document) -> Model | None:
        """The state this pod continues from; None if a holder died meanwhile, which another epoch will
        heal.
        """
        if restore.source is Source.STORE:
            return Model()
        if pod.id in restore.live and pod.model is not None and self.whole:
            if pod.model.step != restore.step:
                raise ViolationError(f"{pod.id} stands at {pod.model.step}, not at {restore.step}")
            return pod.model
        holders = [self.pods[h] for h, _ in restore.holders if self.pods[h].alive]
        if restore.source is Source.LIVE:
            models = [h.model for h in holders if h.model is not None and h.model.step == restore.step]
            return models[0] if models else None
        wanted = restore.shard
        assert wanted is not None
        parts: dict[int, Model] = {}
        for holder in holders:
            for shard, model in holder.held.items():
                same = (shard.step, shard.epoch, shard.of, shard.live)
                if same == (wanted.step, wanted.epoch, wanted.of, wanted.live):
                    parts[shard.index] = model
        if len(parts) < wanted.of:
            return None
        if len(set(parts.values())) != 1:
            raise ViolationError(f"parts of different histories under one name: {parts}")
        return parts[0]

    def check_promise(self, restore: Restore, document: Document) -> None:
        """Losing at most as many failure domains as there are replicas loses no committed step and needs
        no disk.
        """
        if self.safe < 0 or len(self.lost) > self.replicas or document.epoch < self.highest:
            return
        if restore.source is Source.STORE or restore.step < self.safe:
            raise ViolationError(f"restored {restore} though step {self.safe} was safe and only {self.lost} was lost")

    # -- training ---------------------------------------------------------------------------------------

    def seats(self) -> list[Pod]:
        """The members of the newest epoch anybody trains in, if all of them can take part in a step."""
        newest = max((p.epoch for p in self.pods.values() if p.alive), default=0)
        names = self.epochs.get(newest, ())
        seats = [self.pods[n] for n in names]
        able = all(p.alive and not p.frozen and not p.worker_frozen and p.epoch == newest for p in seats)
        return seats if newest and able and not any(p.parked for p in seats) else []

    def step(self, sealed: int, torn: int | None = None) -> None:
        """All members make a step. `torn`: that one applied it before the others failed."""
        seats = self.seats()
        if not seats or seats[0].model is None:
            return
        if len({p.model for p in seats}) != 1:
            raise ViolationError(f"members train different models: {[p.model for p in seats]}")
        self.now += 0.1
        next_window = window(seats[0].model.cursor, SAMPLES, BATCH)
        if torn is not None:
            ahead = seats[torn % len(seats)]
            ahead.model = ahead.model.trained(next_window) if ahead.model and self.whole else None
            return
        for pod in seats:
            assert pod.model is not None
            pod.model = pod.model.trained(next_window)
            pod.ledger.stepped(self.now, pod.model.step)
        if any(p.seen.phase is Phase.PREPARE and p.seen.epoch > p.epoch for p in seats):
            sealed = len(seats)  # a planned change saves everything before it stands still
            for pod in seats:
                self.park(pod)
        self.seal(seats, sealed)

    def seal(self, seats: list[Pod], count: int) -> None:
        """The first `count` members get their part sealed and copied before anything else happens."""
        members = tuple(p.member for p in seats)
        copies: dict[int, int] = {}
        for index, pod in enumerate(seats[:count]):
            assert pod.model is not None
            shard = Shard(pod.model.step, pod.epoch, index, len(seats))
            pod.held[shard] = pod.model
            copies[index] = 1
            for other in protected_by(members, index, min(self.replicas, len(seats) - 1)):
                if self.pods[members[other].id].alive:
                    self.pods[members[other].id].held[shard] = pod.model
                    copies[index] += 1
        if complete(copies, len(seats), min(1 + self.replicas, len(seats))):
            self.committed(seats)

    def committed(self, seats: list[Pod]) -> None:
        model, epoch = seats[0].model, seats[0].epoch
        assert model is not None
        for pod in seats:
            for old in obsolete(list(pod.held), epoch, model.step):
                del pod.held[old]
            pod.protected = epoch
            pod.ledger.committed(model.step)
        self.safe = model.step
        domains = {p.domain for p in seats}
        self.lost = set() if len(domains) > self.replicas else {"too", "few", "domains", "to", "count"}

    # -- what goes wrong ----------------------------------------------------------------------------------

    def join(self, domain: str) -> None:
        self.born += 1
        pod = Pod(f"p{self.born}", domain, ledger=Ledger(self.now))
        self.pods[pod.id] = pod

    def kill_worker(self, pod: Pod, spare: bool) -> None:
        pod.life += 1
        pod.ready, pod.parked, pod.worker_frozen = spare, True, False
        pod.model, pod.epoch = None, 0

    def kill_pod(self, pod: Pod) -> None:
        pod.alive = False
        pod.held.clear()
        self.lost.add(pod.domain)
        for one in self.pods.values():
            one.cut_off = False if one.domain == pod.domain else one.cut_off

    def thaw(self, pod: Pod) -> None:
        """A pod that was away finds out that the world went on: its worker, if it was training, starts
        over.
        """
        was_away = pod.frozen or pod.cut_off
        pod.frozen = pod.cut_off = False
        if was_away and pod.epoch and pod.epoch < self.highest:
            self.kill_worker(pod, spare=False)

    def released_safely(self) -> None:
        for pod in self.pods.values():
            pod.ledger.until(self.now)
            total = sum(pod.ledger.totals.values())
            if abs(total - pod.ledger.total) > 1e-6 or min(pod.ledger.totals.values(), default=0.0) < -1e-9:
                raise ViolationError(f"ledger of {pod.id}: {total} of {pod.ledger.total} seconds")

    def settle(self) -> None:
        """No more faults: everybody comes back and the job goes on to the end of the pass."""
        for pod in self.pods.values():
            self.thaw(pod)
            if pod.worker_frozen:
                self.kill_worker(pod, spare=True)
        if self.authority is None:
            self.start_authority()
        if not any(p.alive and not p.leaving for p in self.pods.values()):
            self.join("last")
        for pod in self.pods.values():
            pod.ready = pod.ready or pod.alive
        for _ in range(40):
            self.talk()
            self.step(sealed=9)

    def resize(self, target: int) -> None:
        if self.authority is not None:
            try:
                self.authority.resize(target, None, self.now)
            except Refused as error:
                raise ViolationError(f"a size without a deadline was refused: {error}") from error


def replay(model: Model) -> Cursor:
    cursor = Cursor()
    for turn, start, stop in model.seen:
        step = window(cursor, SAMPLES, BATCH)
        if (step.turn, step.start, step.stop) != (turn, start, stop):
            raise ViolationError(f"window {(turn, start, stop)} was trained where {step} was due")
        cursor = step.after
    return cursor


def stale_status(pod: Pod) -> Status:
    return replace(pod.status(), member=replace(pod.member, life=pod.life - 1))
