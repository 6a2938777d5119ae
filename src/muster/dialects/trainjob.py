"""Kubeflow Trainer's TrainJob: a JobSet of the same name that Trainer makes from a runtime.

The members are the JobSet's; suspension, the deadline and the end are the TrainJob's, since Trainer would
undo what is said to the JobSet alone.
"""

from dataclasses import replace

from muster.dialects import jobset
from muster.dialects.cluster import Cluster, Item, Resource
from muster.dialects.limits import exec_time, least, queue_in
from muster.dialects.ownership import (
    OwnerKind,
    OwnerSays,
    StatusCondition,
    has_condition,
    said_gang,
    suspending,
)
from muster.dialects.spelling import Served
from muster.objects.decode import Decoded


class TrainJobSpec(Decoded, frozen=True):
    """What is asked of Trainer."""

    suspend: bool = False
    active_deadline_seconds: int | None = None


class TrainJobStatus(Decoded, frozen=True):
    """How far it has come."""

    conditions: list[StatusCondition] = []


class TrainJob(Item, frozen=True):
    """A TrainJob."""

    spec: TrainJobSpec = TrainJobSpec()
    status: TrainJobStatus = TrainJobStatus()


SERVED = Served(Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs"), TrainJob)


def read(job: TrainJob, cluster: Cluster) -> OwnerSays:
    """The members of its JobSet under the TrainJob's own switches."""
    meta = job.metadata
    made = cluster.find(jobset.JobSet, jobset.SERVED.resource.group, "JobSet", meta.namespace, meta.name)
    inner = jobset.read(made, cluster) if made is not None else OwnerSays()
    return replace(
        inner,
        gang=said_gang(meta.annotations) is not False,
        suspended=job.spec.suspend,
        finished=has_condition(job.status.conditions, "Complete", "Failed"),
        limit=least(job.spec.active_deadline_seconds, exec_time(meta.labels), inner.limit),
        queue=queue_in(meta.labels, meta.annotations) or inner.queue,
    )


STOP, RESUME = suspending(SERVED, "suspend")
KIND = OwnerKind("trainjob", SERVED, read, STOP, RESUME)
