"""Tiresias' job lists: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`.

A job is one gang with a member per GPU. The list states no requested time, so the scheduler does not know how
long a job runs.
"""

from muster.model.gang import Gang
from muster.sim.readers.source import Source
from muster.sim.readers.table import header, rows
from muster.sim.readers.workers import Workers
from muster.sim.workload import Job, Workload

_COLUMNS = {"job_id", "num_gpu", "submit_time", "duration"}


def sniff(head: list[str]) -> bool:
    return header(head) >= _COLUMNS


def read(source: Source) -> Workload:
    workers = Workers()
    jobs = []
    for row in rows(source):
        identity = row.text("job_id", str(row.line))
        gang = Gang(
            uid=identity,
            roles=workers[row.whole("num_gpu", least=1)],
            submitted=row.number("submit_time"),
            name=row.text("model_name"),
        )
        jobs.append(Job(gang, row.positive("duration"), identity))
    return Workload(source.name, tuple(jobs))
