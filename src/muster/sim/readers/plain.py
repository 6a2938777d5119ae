"""Muster's own plain CSV, for traces of any origin: docs/traces.md says what each column means.

`gpus`, `cpus` and `memory_gib` are what the job holds in all, spread evenly over its `nodes` members;
without `nodes` a job has a member per GPU, or one member if it has none. `duration` is the run time at that
size. With `min` below it the gang may start smaller, and then runs longer in proportion.
"""

from fractions import Fraction

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness
from muster.sim.readers.source import Source
from muster.sim.readers.table import Row, header, rows
from muster.sim.workload import CPU, GPU, MEMORY, PER_UNIT, Job, Workload

_REQUIRED = {"job_id", "submit", "duration"}
COLUMNS = (
    *(
        "job_id",
        "submit",
        "duration",
        "gpus",
        "cpus",
        "memory_gib",
        "nodes",
        "min",
        "max",
        "walltime",
        "estimate",
    ),
    *("deadline", "priority", "queue", "user", "waiting_cost", "required", "preferred"),
)
_ANYHOW = Closeness()
_GIB = 1 << 30
_LARGEST = 1 << 53  # base units: sums of amounts stay within 64 bits

_Shapes = dict[tuple[object, ...], tuple[Role, ...]]


def sniff(head: list[str]) -> bool:
    return header(head) >= _REQUIRED


def read(source: Source) -> Workload:
    shapes: _Shapes = {}
    jobs = tuple(_job(row, shapes) for row in rows(source, COLUMNS))
    return Workload(source.name, jobs)


def _job(row: Row, shapes: _Shapes) -> Job:
    members = row.whole("nodes", _default_members(row), least=1)
    least, most = row.whole("min", members, least=1), row.whole("max", members, least=1)
    if least > most:
        raise row.error("min", f"it is above max, {most}")
    if not least <= members <= most:
        raise row.error("min" if least > members else "max", f"the job has {members} members, and must lie between")
    identity = row.text("job_id")
    if not identity:
        raise row.error("job_id", "give every job an id")
    gang = Gang(
        uid=identity,
        roles=_roles(row, members, least, most, shapes),
        submitted=row.number("submit"),
        queue=row.text("queue"),
        user=row.text("user"),
        priority=row.whole("priority", 0, least=-(2**31)),
        walltime=row.positive("walltime") if row.has("walltime") else None,
        estimate=row.positive("estimate") if row.has("estimate") else None,
        deadline=row.optional("deadline"),
        waiting_cost=row.number("waiting_cost", 0.0),
        closeness=_closeness(row),
    )
    return Job(gang, row.positive("duration") * members / least, identity)


def _default_members(row: Row) -> int:
    return max(1, row.whole("gpus", 0))


def _roles(row: Row, members: int, least: int, most: int, shapes: _Shapes) -> tuple[Role, ...]:
    request = {
        GPU: _share(row, "gpus", 1, members),
        CPU: _share(row, "cpus", PER_UNIT[CPU], members),
        MEMORY: _share(row, "memory_gib", _GIB, members),
    }
    shape = (least, most, *request.values())
    if shape not in shapes:
        held = {name: amount for name, amount in request.items() if amount}
        if not held:
            raise row.error("gpus", "the job asks for nothing; give gpus, cpus or memory_gib above 0")
        shapes[shape] = (Role("worker", least, held, max=most),)
    return shapes[shape]


def _share(row: Row, field: str, units: int, members: int) -> int:
    """Each member's part in base units. Cards cannot be cut; the rest is rounded up to a whole unit."""
    share = Fraction(row.number(field, 0.0)) * units / members
    if share > _LARGEST:
        raise row.error(field, "that is more than any machine has")
    if field == "gpus" and share.denominator != 1:
        raise row.error(field, f"it cannot be spread evenly over {members} members")
    return -(-share.numerator // share.denominator)


def _closeness(row: Row) -> Closeness:
    required, preferred = row.text("required"), row.text("preferred")
    return Closeness(required, preferred) if required or preferred else _ANYHOW
