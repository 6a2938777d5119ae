"""What a dialect says of one gang, before its members are looked at.

Each dialect module produces `Terms`; `assemble` joins them with the pods into a gang. So a dialect knows
names and traps, and nothing of how roles are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from muster.dialects.cluster import Ref
from muster.objects.pods import Pod

Match = Literal["once-satisfied", "only-waiting", "waiting-and-running", "waiting-running-succeed"]
"""Whose presence counts for the quorum when members start after the first time."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A contradiction or an unreadable value: the field, what is wrong with it, and the fix, in one line."""

    field: str
    message: str
    fatal: bool = False  # the gang is refused; otherwise it is planned without the value

    def __str__(self) -> str:
        return one_line(f"{self.field}: {self.message}")


def one_line(text: str) -> str:
    """Text people wrote may hold line breaks; what is told about it may not."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a gang cannot be planned yet although nothing is wrong with it."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Members an owner creates, by its spec: what is counted while they do not exist."""

    role: str
    count: int
    template: Pod
    most: int = 0  # as many as the owner can be resized to; 0: count
    least: int | None = None  # its share of the quorum; None: all
    later: bool = False  # created only once others are ready
    done: int = 0  # finished members by the owner's own status: their pods may be gone
    lost: int = 0  # members that failed for good and are not replaced
    owner: Ref | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """One gang in the words of its dialect."""

    name: str
    namespace: str
    uid: str = ""
    minimum: int | None = None  # None: not stated, every expected or present member counts
    role_minimum: Mapping[str, int] = field(default_factory=dict)
    match: Match = "waiting-running-succeed"
    started: bool = False  # the API remembers that the quorum was met once
    strict: bool = True  # the first member without room gives up for all
    gates_whole: bool = False  # one gated member holds all
    loose: bool = False  # members start as they come, together only where closeness says so
    submitted: float | None = None
    timeout: float | None = None  # seconds one attempt may take, by the dialect
    limit: float | None = None  # seconds it may run, by the dialect
    priority: int | None = None
    preempts: bool = True
    unit_of_disruption: bool = True  # victims fall whole
    queue: str = ""
    group: str = ""
    group_size: int = 1
    group_min: int = 0
    required_topology: str = ""
    preferred_topology: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the group object: they win
    anchor: Ref | None = None  # the object that stands for the gang
    expected: tuple[Expected, ...] = ()
    hold: Hold | None = None
    suspended: bool = False
    finished: bool = False
    problems: tuple[Problem, ...] = ()
