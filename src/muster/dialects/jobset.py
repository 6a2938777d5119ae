"""JobSet (`jobset.x-k8s.io/v1alpha2`): several Jobs that are one gang, one role per replicated Job.

Trap: with `dependsOn`, `startupPolicy: InOrder` or exclusive placement not all pods exist at once; a gang
counted from live pods would wait for ever. Members are counted from the spec, and seats held for the later
ones.
"""

import msgspec

from muster.dialects.cluster import Cluster, Item, Resource
from muster.dialects.job import JobSpec
from muster.dialects.limits import exec_time, least, queue_in
from muster.dialects.ownership import (
    OwnerKind,
    OwnerSays,
    StatusCondition,
    has_condition,
    said_gang,
    suspending,
    template_of,
)
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Named

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class JobTemplate(Decoded, frozen=True):
    """The Job of one replicated Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class ReplicatedJob(Decoded, frozen=True):
    """So many Jobs of one template."""

    name: str = ""
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: list[Named] = []


class StartupPolicy(Decoded, frozen=True):
    """The order in which replicated Jobs start."""

    startup_policy_order: str = "AnyOrder"


class JobSetSpec(Decoded, frozen=True):
    """What the set makes."""

    replicated_jobs: list[ReplicatedJob] = []
    startup_policy: StartupPolicy | None = None
    suspend: bool = False


class ReplicatedJobStatus(Decoded, frozen=True):
    """How far one replicated Job has come."""

    name: str = ""
    succeeded: int = 0


class JobSetStatus(Decoded, frozen=True):
    """How far the set has come."""

    terminal_state: str = ""
    conditions: list[StatusCondition] = []
    replicated_jobs_status: list[ReplicatedJobStatus] = []


class JobSet(Item, frozen=True):
    """A JobSet."""

    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = msgspec.field(default=JobSetStatus())


SERVED = Served(Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"), JobSet)


def read(jobset: JobSet, _cluster: Cluster) -> OwnerSays:
    """One role per replicated Job."""
    spec, status, meta = jobset.spec, jobset.status, jobset.metadata
    limits = [job.template.spec.active_deadline_seconds for job in spec.replicated_jobs]
    return OwnerSays(
        expected=tuple(_expected(jobset, number) for number in range(len(spec.replicated_jobs))),
        gang=said_gang(meta.annotations) is not False,
        suspended=spec.suspend,
        finished=bool(status.terminal_state) or has_condition(status.conditions, "Completed", "Failed"),
        limit=least(_longest(limits), exec_time(meta.labels)),
        queue=queue_in(meta.labels, meta.annotations),
    )


def _expected(jobset: JobSet, number: int) -> Expected:
    each = jobset.spec.replicated_jobs[number]
    job = each.template.spec
    pods = job.parallelism if job.completions is None else min(job.parallelism, job.completions)
    succeeded = {status.name: status.succeeded for status in jobset.status.replicated_jobs_status}
    return Expected(
        role=each.name.lower(),
        count=each.replicas * pods,
        template=template_of(job.template, jobset),
        later=_later(jobset, number),
        done=succeeded.get(each.name, 0) * pods,
    )


def _later(jobset: JobSet, number: int) -> bool:
    each, policy = jobset.spec.replicated_jobs[number], jobset.spec.startup_policy
    in_order = policy is not None and policy.startup_policy_order == "InOrder" and number > 0
    exclusive = EXCLUSIVE in jobset.metadata.annotations or EXCLUSIVE in each.template.metadata.annotations
    return bool(each.depends_on) or in_order or exclusive


def _longest(limits: list[int | None]) -> float | None:
    """The set runs as long as its longest Job; one without a limit has no end."""
    stated = [each for each in limits if each is not None]
    return float(max(stated)) if stated and len(stated) == len(limits) else None


STOP, RESUME = suspending(SERVED, "suspend")
KIND = OwnerKind("jobset", SERVED, read, STOP, RESUME)
