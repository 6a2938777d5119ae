"""Job (`batch/v1`): a gang if said so, or if Indexed with as many completions as parallel pods.

Other Jobs are loose tasks. A finished index counts for the quorum and is not started again, so that a Job
whose index fails after another completed can still finish. Indices given up for good are not waited for.
"""

from collections.abc import Iterator

from muster.dialects.cluster import Cluster, Item, Ref, Resource
from muster.dialects.groupspec import Constraints, Gang
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
from muster.dialects.ranks import role_of
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.dialects.verbs import Verb, patch
from muster.objects.decode import Decoded
from muster.objects.pods import Pod


class JobPolicy(Decoded, frozen=True):
    """The scheduling policy of a Job."""

    gang: Gang | None = None


class JobScheduling(Decoded, frozen=True):
    """`spec.scheduling`; the short form without `schedulingPolicy` is read as well."""

    scheduling_policy: JobPolicy = JobPolicy()
    gang: Gang | None = None
    scheduling_constraints: Constraints = Constraints()

    @property
    def quorum(self) -> Gang | None:
        """The gang, whichever way it is written."""
        return self.scheduling_policy.gang or self.gang


class PodConditionPattern(Decoded, frozen=True):
    """A condition of a failed pod."""

    type: str = ""


class FailureRule(Decoded, frozen=True):
    """What to make of some failures."""

    action: str = ""
    on_pod_conditions: list[PodConditionPattern] = []


class FailurePolicy(Decoded, frozen=True):
    """What to make of failures."""

    rules: list[FailureRule] = []


class JobSpec(Decoded, frozen=True):
    """What the Job makes."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    active_deadline_seconds: int | None = None
    scheduling: JobScheduling | None = None
    pod_failure_policy: FailurePolicy | None = None
    template: Pod = Pod()

    @property
    def ignores_disruption(self) -> bool:
        """Whether an evicted pod is replaced without counting as a failure."""
        rules = self.pod_failure_policy.rules if self.pod_failure_policy is not None else []
        return any(
            rule.action == "Ignore" and any(each.type == "DisruptionTarget" for each in rule.on_pod_conditions)
            for rule in rules
        )


class JobStatus(Decoded, frozen=True):
    """How far it has come."""

    succeeded: int = 0
    failed_indexes: str = ""
    conditions: list[StatusCondition] = []


class Job(Item, frozen=True):
    """A Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


SERVED = Served(Resource("batch", "v1", "Job", "jobs"), Job)


def read(job: Job, _cluster: Cluster) -> OwnerSays:
    """Members, quorum and limits of a Job."""
    spec, meta = job.spec, job.metadata
    scheduling = spec.scheduling
    gang = scheduling.quorum if scheduling is not None else None
    return OwnerSays(
        expected=(_expected(job),),
        gang=is_gang(job),
        minimum=_quorum(job, gang.min_count) if gang is not None and gang.min_count > 0 else None,
        match="waiting-running-succeed" if is_whole(spec) else "waiting-and-running",
        tail=not is_whole(spec) and (spec.completions or 0) - job.status.succeeded < spec.parallelism,
        suspended=spec.suspend,
        finished=has_condition(job.status.conditions, "Complete", "Failed"),
        limit=least(spec.active_deadline_seconds, exec_time(meta.labels)),
        queue=queue_in(meta.labels, meta.annotations),
        required_topology=scheduling.scheduling_constraints.key if scheduling is not None else "",
    )


def is_gang(job: Job) -> bool:
    """Said so, or every index has its pod at once."""
    said = said_gang(job.metadata.annotations, job.spec.template.metadata.annotations)
    if said is not None:
        return said
    if job.spec.scheduling is not None:
        return job.spec.scheduling.quorum is not None
    return job.spec.completion_mode == "Indexed" and job.spec.completions == job.spec.parallelism > 1


def is_whole(spec: JobSpec) -> bool:
    """Whether each completion has a pod of its own at once: then what succeeded counts as being there.

    Without completions no pod is made any more once one succeeded, so that comes to the same.
    """
    return spec.completions in {None, spec.parallelism}


def can_grow(spec: JobSpec) -> bool:
    """Whether more pods at once are possible: elastic indices, or work that is left."""
    if spec.completions == spec.parallelism:
        return spec.completion_mode == "Indexed"
    return spec.completions is None or spec.completions > spec.parallelism


def _expected(job: Job) -> Expected:
    spec, status = job.spec, job.status
    template = template_of(spec.template, job)
    lost = sum(1 for _ in indexes(status.failed_indexes)) if is_whole(spec) else 0
    count = spec.parallelism
    if spec.completions is not None and not is_whole(spec):
        count = min(count, max(spec.completions - status.succeeded, 0))
    return Expected(
        role=role_of(template),
        count=count,
        template=template,
        most=count if can_grow(spec) else 0,
        done=status.succeeded if is_whole(spec) else 0,
        lost=lost,
    )


def _quorum(job: Job, minimum: int) -> int:
    """A quorum is never more than what is still to be done."""
    spec = job.spec
    lost = sum(1 for _ in indexes(job.status.failed_indexes)) if is_whole(spec) else 0
    if spec.completions is not None and not is_whole(spec):
        return min(minimum, max(spec.completions - job.status.succeeded, 1))
    return max(min(minimum, spec.parallelism - lost), 1)


def indexes(text: str) -> Iterator[int]:
    """The numbers in `1,3-5`; what is not a range is left out."""
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal() and len(first) < 10 and len(last) < 10:
            yield from range(int(first), min(int(last or first), int(first) + 100_000) + 1)


def resize(job: Job, ref: Ref, members: int) -> tuple[Verb, ...]:
    """An elastic Indexed Job takes both numbers together; other Jobs the one."""
    spec: dict[str, int] = {"parallelism": members}
    if job.spec.completion_mode == "Indexed" and job.spec.completions == job.spec.parallelism:
        spec["completions"] = members
    return (patch(SERVED.resource, ref, {"spec": spec}),)


STOP, RESUME = suspending(SERVED, "suspend")
KIND = OwnerKind("job", SERVED, read, STOP, RESUME, resize)
