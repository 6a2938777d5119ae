"""What a trace holds once it is read: jobs as the scheduler sees them, and how long each really runs."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.model.gang import Gang
from muster.model.node import Node
from muster.model.topology import Topology

CPU = "cpu"
GPU = "nvidia.com/gpu"
GPU_MILLI = "nvidia.com/gpu-milli"
MEMORY = "memory"

FLAT = Topology()

PER_UNIT = {CPU: 1000, GPU_MILLI: 1000}
"""How many of a resource's base units make the one thing people count: a CPU, a card."""


@dataclass(frozen=True, slots=True)
class Job:
    """One record of a trace. `runtime` is what really happens at the size asked for: no scheduler sees it."""

    gang: Gang
    runtime: float
    id: str


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in file order. Jobs of one shape share the same Role objects, so that a shape is compiled once."""

    name: str
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...] = ()  # when the trace brings its machines
    topology: Topology = FLAT
    skipped: tuple[str, ...] = ()  # one line per record left out: file, line, reason


def counted(resources: Iterable[str]) -> str:
    """The resource a cluster is measured in: its GPUs if it has any, else its CPUs."""
    names = set(resources)
    return next((name for name in (GPU, GPU_MILLI) if name in names), CPU)


def width(gang: Gang, unit: str) -> float:
    """How much of the counted resource the gang holds while it runs at its minimum size."""
    return sum(role.min * role.request.get(unit, 0) for role in gang.roles) / PER_UNIT.get(unit, 1)
