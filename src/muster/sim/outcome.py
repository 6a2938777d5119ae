"""What became of each job of a workload under one policy: the one result everything else is computed from."""

from dataclasses import dataclass, field

from muster.sim.workload import Job, Workload


@dataclass(slots=True)
class Outcome:
    job: Job
    started: float | None  # None: never started
    finished: float | None
    nodes: tuple[tuple[str, int], ...] = ()  # (node name, members) while it ran, in rank order
    reason: str = ""  # why it never started
    backfilled: bool = False
    restarts: int = 0
    lost: float = 0.0  # seconds of work done again


@dataclass(slots=True)
class History:
    """One run of the simulator. `seconds` is what the run itself took on this machine."""

    workload: Workload
    policy: str
    tie_break: str
    outcomes: list[Outcome]  # in file order
    capacity: int  # units of the counted resource (GPUs if the cluster has any, else CPUs)
    unit: str  # name of that resource
    seconds: float
    cycles: int
    actions: dict[str, int] = field(default_factory=dict)  # how often each kind of plan action fired
