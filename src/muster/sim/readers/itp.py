"""The Microsoft ITP clusters as published with ElasticFlow: GPU jobs of ten clusters, in CSV.

`job_id,submission_time,duration,num_gpu`, and in the second archive `num_iteration,model_name,deadline,
batch_size` besides. A job is one gang with a member per GPU; the trace states no requested time, so its
length is unknown to the scheduler. Cluster sizes are not in the trace: choose one with --procs or
--cluster.
"""

from muster.model.gang import Gang
from muster.sim.readers.source import Source
from muster.sim.readers.table import header, rows
from muster.sim.readers.workers import Workers
from muster.sim.workload import Job, Workload

_COLUMNS = {"job_id", "submission_time", "duration", "num_gpu"}


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
            submitted=row.number("submission_time"),
            name=row.text("model_name"),
            deadline=row.optional("deadline"),
        )
        jobs.append(Job(gang, row.positive("duration"), identity))
    return Workload(source.name, tuple(jobs))
