"""The result of reading a gang: what the brain gets, what people are told, and what verbs act on."""

from dataclasses import dataclass
from typing import Literal

from muster.dialects.cluster import Key, Ref
from muster.dialects.terms import Hold, Problem, Terms, one_line
from muster.model.gang import Gang, Running

State = Literal["gated", "waiting", "bound", "running", "succeeded", "failed", "ending"]
Stage = Literal["waiting", "running", "partial", "done", "stopped"]

COUNTED: frozenset[State] = frozenset({"gated", "waiting", "bound", "running", "succeeded"})
HOLDING: frozenset[State] = frozenset({"bound", "running"})


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of a gang. `ending` ones were deleted and only hold their node; they count for nothing."""

    uid: str
    name: str
    role: int  # index into the roles; -1 where the gang cannot be told into roles
    state: State
    node: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """Members by state. `expected` is how many there are once all exist."""

    expected: int = 0
    minimum: int = 0
    gated: int = 0
    waiting: int = 0
    bound: int = 0  # on a node, not running yet
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def present(self) -> int:
        """Members that exist and have not failed."""
        return self.gated + self.waiting + self.bound + self.running + self.succeeded

    @property
    def scheduled(self) -> int:
        """Members that hold a node."""
        return self.bound + self.running


@dataclass(frozen=True, slots=True)
class Reading:
    """A gang as it stands in the API. `gang` is None where it cannot be planned: see `reason`."""

    key: Key
    terms: Terms
    gang: Gang | None
    running: Running | None
    members: tuple[Member, ...]  # by role, then in rank order
    counts: Counts
    stage: Stage
    hold: Hold | None
    problems: tuple[Problem, ...]
    owners: tuple[Ref, ...]  # what stop and resize act on; empty for bare pods

    @property
    def refused(self) -> Problem | None:
        """The contradiction because of which the gang is not planned, if there is one."""
        return next((each for each in self.problems if each.fatal), None)

    @property
    def reason(self) -> str:
        """What there is to say before the brain has been asked."""
        if self.refused is not None:
            return str(self.refused)
        return one_line(self.hold.message) if self.hold is not None else ""

    def waiting(self, role: int) -> tuple[Member, ...]:
        """The members of a role that want a node, in rank order."""
        return tuple(each for each in self.members if each.role == role and each.state == "waiting")
