"""Who leads: the rules of a Lease as a state machine without clock, network or doubt.

The record on the API says who holds the lease; how old it is, everybody judges by when he himself saw it
change, on his own clock. So wrong clocks do no harm, and clocks that run at rates up to 2 % apart none
either. A holder counts from *before* it sent its renewal, everybody else from *after* seeing it, and the
holder stops a twentieth early: two cannot lead at once.

Three things are unusual. A renewal without an answer proves nothing, until a read shows that it arrived. A
lease created where none was is not to be trusted for one duration, because another may still lead by one
that was just deleted; a lease that was released properly is still there, with no holder. And seeing another
holder, or none, ends leadership at once.
"""

import math
from dataclasses import dataclass

MARGIN = 0.95


@dataclass(frozen=True, slots=True)
class Record:
    """The lease as it is on the API; `version` changes with every write to it."""

    holder: str
    duration: float
    renewed: str = ""
    acquired: str = ""
    transitions: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """Do read the record."""


@dataclass(frozen=True, slots=True)
class Write:
    """Do write the record, if it is still of that version; if that is empty, create it."""

    holder: str
    version: str
    transitions: int
    takes: bool  # it changes hands, so the time of acquiring is now


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until then."""

    until: float


@dataclass(slots=True)
class _Pending:
    """A write sent and not confirmed, recognised by its renewal time."""

    renewed: str
    sent: float
    created: bool


@dataclass(slots=True)
class Election:
    """One contender. `identity` must be new with every process: a lease of that name is its own."""

    identity: str
    duration: float
    valid_from: float = math.inf
    valid_until: float = -math.inf
    seen: Record | None = None
    seen_at: float = -math.inf
    _trusted: float = -math.inf
    _quiet_until: float = -math.inf
    _read_due: float = -math.inf
    _renew_due: float = -math.inf
    _pending: _Pending | None = None

    @property
    def period(self) -> float:
        """Between two renewals, or two looks at another's lease."""
        return self.duration / 3

    def leads(self, now: float) -> bool:
        """Whether it is certain that nobody else leads."""
        return self.valid_from <= now < self.valid_until

    def next(self, now: float) -> Read | Write | Wait:
        """What to do now."""
        if now < self._quiet_until:
            return Wait(self._quiet_until)
        if now >= self._read_due:
            return Read()
        if self._holds:
            return Wait(self._renew_due) if now < self._renew_due else self._write(takes=False)
        free = self._free_at
        return self._write(takes=True) if now >= free else Wait(min(free, self._read_due))

    def release(self, now: float) -> Write | None:
        """The write that gives the lease up, if it is ours to give; from now on nothing may be sent."""
        trusted = self.valid_from <= now
        self._lose()
        if not trusted or not self._holds or self.seen is None:
            return None
        return Write("", self.seen.version, self.seen.transitions, takes=False)

    def sent(self, write: Write, renewed: str, now: float) -> None:
        """That write is about to be sent, with this time of renewal in it."""
        self._pending = _Pending(renewed, now, not write.version)

    def observed(self, record: Record | None, now: float) -> None:
        """A read, or the answer to a write, showed this record, or that there is none."""
        if record is None:
            self.seen, self._pending = None, None
            self._lose()
            self._read_due = now + self.period
            return
        if self.seen is None or record.version != self.seen.version:
            self.seen, self.seen_at = record, now
        if record.holder != self.identity:
            self._pending = None
            self._lose()
            self._read_due = now + self.period
            return
        self._confirm(record, now)

    def refused(self, now: float) -> None:
        """Somebody else wrote first, or the record is gone: look again at once."""
        self._pending = None
        self._read_due = now

    def unknown(self, now: float, pause: float) -> None:
        """No answer: what was sent may arrive yet. Look again after a pause."""
        self._read_due = self._quiet_until = now + pause

    @property
    def _holds(self) -> bool:
        return self.seen is not None and self.seen.holder == self.identity

    @property
    def _free_at(self) -> float:
        """When the lease may be taken."""
        if self.seen is None or not self.seen.holder:
            return -math.inf
        return self.seen_at + self.seen.duration

    def _write(self, *, takes: bool) -> Write:
        if self.seen is None:
            return Write(self.identity, "", 0, takes=True)
        return Write(self.identity, self.seen.version, self.seen.transitions + takes, takes=takes)

    def _confirm(self, record: Record, now: float) -> None:
        self._read_due = math.inf
        pending = self._pending
        if pending is None or pending.renewed != record.renewed:
            self._renew_due = now
            return
        self._pending = None
        self._renew_due = pending.sent + self.period
        if pending.created:
            self._trusted = now + self.duration
        if not self.valid_until > now:
            self.valid_from = max(now, self._trusted)
        self.valid_until = max(self.valid_until, pending.sent + self.duration * MARGIN)

    def _lose(self) -> None:
        self.valid_from, self.valid_until = math.inf, -math.inf
