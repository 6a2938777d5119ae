"""A workload and a run of it that need no engine: strict first come, first served on one flat machine."""

import heapq

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.sim.outcome import History, Outcome
from muster.sim.workload import Job, Workload

CPUS = {"cpu": 1000}


def job(identity: str, submitted: float, runtime: float, size: int, **gang: object) -> Job:
    roles = (Role("job", size, CPUS),)
    known = {"walltime": runtime, **gang}
    return Job(Gang(uid=identity, roles=roles, submitted=submitted, **known), runtime, identity)  # type: ignore[arg-type]


def machine(procs: int) -> tuple[Node, ...]:
    return (Node("machine", {"cpu": procs * 1000}),)


def first_come(workload: Workload, procs: int) -> History:
    """Every job starts once all before it have, and it fits; too large a job never does."""
    ends: list[tuple[float, int]] = []
    free, now = procs, 0.0
    outcomes = []
    for each in workload.jobs:
        size = each.gang.members
        if size > procs:
            outcomes.append(Outcome(each, None, None, reason=f"needs {size} CPUs; the cluster has {procs}"))
            continue
        now = max(now, each.gang.submitted)
        while ends and (ends[0][0] <= now or free < size):
            end, freed = heapq.heappop(ends)
            free, now = free + freed, max(now, end)
        free -= size
        finished = now + min(each.runtime, each.gang.walltime or each.runtime)
        heapq.heappush(ends, (finished, size))
        outcomes.append(Outcome(each, now, finished, nodes=(("machine", size),)))
    return History(workload, "fcfs", "batch", outcomes, procs, "cpu", 0.5, len(outcomes), {"start": len(outcomes)})
