"""The table of trace formats, and the choice among them by what the file contains, never by its name."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from muster.errors import UserError
from muster.sim.readers import itp, openb, plain, pollux, swf, tiresias
from muster.sim.readers.source import Source, open_source
from muster.sim.workload import Workload

_HEAD = 40


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    sniff: Callable[[list[str]], bool]
    read: Callable[[Source], Workload]


FORMATS: tuple[Format, ...] = (
    Format("Standard Workload Format", swf.sniff, swf.read),
    Format("Microsoft ITP", itp.sniff, itp.read),
    Format("Alibaba openb", openb.sniff, openb.read),
    Format("Pollux or Sia workload", pollux.sniff, pollux.read),
    Format("Tiresias", tiresias.sniff, tiresias.read),
    Format("plain CSV", plain.sniff, plain.read),
)


def read_trace(trace: str, limit: int | None = None) -> Workload:
    """Read the trace at `trace` (path, or archive:member); with `limit`, its first so many jobs."""
    source = open_source(trace)
    head = [line for line in source.lines[:_HEAD] if line.strip()]
    for known in FORMATS:
        if known.sniff(head):
            return _checked(source, known.read(source), limit)
    names = ", ".join(known.name for known in FORMATS)
    start = head[0][:60] if head else ""
    raise source.error(1, f"the format is not known from {start!r}; formats: {names} (docs/traces.md)")


def _checked(source: Source, workload: Workload, limit: int | None) -> Workload:
    if not workload.jobs:
        why = workload.skipped[0] if workload.skipped else f"{source.where}: it has no records"
        raise UserError(f"there is no job to simulate: {why}")
    _no_twins(source, workload)
    if limit is None:
        return workload
    if limit < 1:
        raise UserError(f"a limit of {limit} jobs leaves nothing to simulate; give at least 1")
    jobs = workload.jobs[:limit]
    return Workload(workload.name, jobs, workload.nodes, workload.topology, workload.skipped)


def _no_twins(source: Source, workload: Workload) -> None:
    seen: set[str] = set()
    for job in workload.jobs:
        if job.id in seen:
            lines = (n for n, line in enumerate(source.lines, 1) if job.id in re.split(r"[\s,]+", line.strip()))
            raise source.error(list(lines)[1], f"job {job.id!r} is there twice; give every job its own id")
        seen.add(job.id)
