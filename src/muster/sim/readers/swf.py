"""Standard Workload Format, the 18 columns of the Parallel Workloads Archive.

What is read, by column: 1 job number, 2 submit time, 4 run time, 5 allocated processors, 8 requested
processors, 9 requested time, 11 status, 12 user, 15 queue. The size is what the scheduler was asked for,
column 8, and column 5 where that is unknown; the walltime is column 9, else the run time.
-1 means unknown throughout.

As the archive advises, records that cannot have run (no processors, run time or submit time) are left out,
each with its reason, and so are the partial executions of a job that has a summary record. A run time above
the requested time stays as it is: the simulator ends a job at its limit. The format orders records by submit
time; a file that is not so ordered (a simulator's output, written as jobs end) is put into order of submit
time and job number.
"""

import itertools
import math
import re

from muster.errors import UserError
from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.sim.readers.source import Source
from muster.sim.readers.table import MOST
from muster.sim.workload import CPU, PER_UNIT, Job, Workload

_COLUMNS = 18
_NAMES = {
    0: "job number",
    1: "submit time",
    3: "run time",
    4: "allocated processors",
    7: "requested processors",
}
_NAMES |= {8: "requested time"}
_MAX_PROCS = re.compile(r";\s*MaxProcs:\s*([1-9]\d*)\s*$")
_UNKNOWN = "-1"
_PARTIAL = {"2", "3", "4"}

_Shapes = dict[float, tuple[Role, ...]]


def sniff(head: list[str]) -> bool:
    """A comment that starts with `;`, or a row of 18 numbers with blanks between them."""
    first = next((line for line in head if line.strip()), "")
    return first.lstrip().startswith(";") or (len(first.split()) == _COLUMNS and "," not in first)


def read(source: Source) -> Workload:
    jobs: list[Job] = []
    skipped: list[str] = []
    shapes: _Shapes = {}
    nodes: tuple[Node, ...] = ()
    for number, line in enumerate(source.lines, start=1):
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(";"):
            nodes = _machine(line) or nodes
            continue
        try:
            job = _job(fields, shapes)
        except (ValueError, IndexError):
            raise _malformed(source, number, fields) from None
        if isinstance(job, Job):
            jobs.append(job)
        else:
            skipped.append(f"{source.where}, line {number}: job {fields[0]} left out: {job}")
    return Workload(source.name, tuple(_in_order(jobs)), nodes, skipped=tuple(skipped))


def _machine(comment: str) -> tuple[Node, ...]:
    """The machine the log was taken on, from its header."""
    found = _MAX_PROCS.match(comment)
    return (Node("machine", {CPU: int(found[1]) * PER_UNIT[CPU]}),) if found else ()


def _job(fields: list[str], shapes: _Shapes) -> Job | str:
    """The job of one record, or why there is none. Raises ValueError where the record breaks the format."""
    if len(fields) != _COLUMNS:
        raise ValueError
    identity, submitted, runtime = fields[0], float(fields[1]), float(fields[3])
    processors, allocated, requested = float(fields[7]), float(fields[4]), float(fields[8])
    if not math.isfinite(submitted + runtime + processors + allocated + requested):
        raise ValueError
    if submitted < -1 or runtime < -1 or processors < -1 or allocated < -1 or requested < -1:
        raise ValueError
    if processors <= 0:
        processors = allocated
    if fields[10] in _PARTIAL:
        return "it is a part of an execution (status in column 11); the summary record stands for it"
    if submitted < 0 or runtime <= 0 or processors <= 0:
        return _why_left_out(submitted, runtime, processors)
    walltime = requested if requested > 0 else runtime
    gang = Gang(
        uid=identity,
        roles=shapes.get(processors) or _shape(processors, shapes),
        submitted=submitted,
        queue="" if fields[14] == _UNKNOWN else fields[14],
        user="" if fields[11] == _UNKNOWN else fields[11],
        walltime=walltime,
    )
    return Job(gang, runtime, identity)


def _shape(processors: float, shapes: _Shapes) -> tuple[Role, ...]:
    if not processors.is_integer() or processors > MOST:
        raise ValueError
    shapes[processors] = (Role("job", int(processors), {CPU: PER_UNIT[CPU]}),)
    return shapes[processors]


def _why_left_out(submitted: float, runtime: float, processors: float) -> str:
    if submitted < 0:
        return "its submit time (column 2) is unknown"
    if processors <= 0:
        return "it has no processors (columns 5 and 8)"
    return f"its run time (column 4) is {runtime:g}"


def _malformed(source: Source, line: int, fields: list[str]) -> UserError:
    """Find out which field broke the record: only now, so that good records cost nothing."""
    if len(fields) != _COLUMNS:
        return source.error(line, f"{len(fields)} fields; a record of the Standard Workload Format has {_COLUMNS}")
    for index, name in _NAMES.items():
        try:
            value = float(fields[index])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            return source.error(line, f"{name} (column {index + 1}) is {fields[index]!r}; give a number, -1 if unknown")
        if value < -1:
            return source.error(line, f"{name} (column {index + 1}) is {value:g}; give at least 0, -1 if unknown")
    return source.error(line, f"the number of processors (columns 5 and 8) is not a whole number up to {MOST}")


def _in_order(jobs: list[Job]) -> list[Job]:
    ordered = all(a.gang.submitted <= b.gang.submitted for a, b in itertools.pairwise(jobs))
    return jobs if ordered else sorted(jobs, key=_submit_and_number)


def _submit_and_number(job: Job) -> tuple[float, int, str]:
    return (job.gang.submitted, int(job.id) if job.id.isdigit() else 0, job.id)
