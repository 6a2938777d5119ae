"""A gang: the unit of queueing, planning, preemption and explanation. Never a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.model.resources import Resources
from muster.model.rules import ANYWHERE, Rules
from muster.model.topology import Closeness, Parallelism


@dataclass(frozen=True, slots=True)
class Role:
    """Identical members: one request, one set of rules. `min` of them start the gang, `max` is all it can use."""

    name: str
    min: int
    request: Resources
    max: int = 0  # 0: as many as min
    rules: Rules = ANYWHERE
    labels: Mapping[str, str] = field(default_factory=dict)  # of the pods: what affinity terms select
    parallelism: Parallelism | None = None
    later: int = 0  # of min: appear only once others are ready; seats are held for them, they delay no quorum
    speedup: tuple[tuple[int, float], ...] = ()  # (members, speed) as stated by the user, least first

    @property
    def most(self) -> int:
        return self.max or self.min


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a gang was promised: room in a domain ('' is the whole cluster) from a time on. Nodes are not part of it."""

    at: float
    domain: str = ""
    count: int = 0
    firm: bool = True  # rests on stated limits alone, not on learned run times
    since: float = 0.0  # when it was first given: who came later, but ranks before, may take it away


@dataclass(frozen=True, slots=True)
class Gang:
    """`uid` names it for ever. Times are seconds on the caller's clock; lengths are seconds."""

    uid: str
    roles: tuple[Role, ...]
    submitted: float
    name: str = ""
    namespace: str = ""
    queue: str = ""
    user: str = ""
    group: str = ""  # gangs of one group start together or not at all
    group_size: int = 1  # how many gangs the group has
    group_min: int = 0  # how many of them must start together; 0: all
    priority: int = 0
    walltime: float | None = None  # a limit, enforced
    estimate: float | None = None  # learned, never enforced
    deadline: float | None = None
    waiting_cost: float = 0.0  # per second
    served: float = 0.0  # GPU-seconds had in earlier runs
    closeness: Closeness = Closeness()
    promised: Reservation | None = None

    @property
    def length(self) -> float | None:
        """How long it is expected to run: its limit, or what was learned, whichever is less."""
        if self.walltime is None:
            return self.estimate
        if self.estimate is None:
            return self.walltime
        return min(self.walltime, self.estimate)

    @property
    def members(self) -> int:
        """Members that must start together."""
        return sum(role.min for role in self.roles)


@dataclass(frozen=True, slots=True)
class Seats:
    """Members of one role on nodes: `counts[i]` of them on `nodes[i]`."""

    role: int
    nodes: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """A gang that holds nodes: since when, where, and how much of its quorum is already done."""

    gang: Gang
    started: float
    seats: tuple[Seats, ...]
    succeeded: tuple[int, ...] = ()  # per role: members that finished, which still count for the quorum
    partial_since: float | None = None
