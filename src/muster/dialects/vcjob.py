"""Volcano's own Job (`batch.volcano.sh/v1alpha1`): tasks as roles. It is stopped and resumed by Commands.

Its pods name a Volcano PodGroup, so the quorum is that group's; the Job tells how many members there will
be.
"""

from typing import Any

from muster.dialects.cluster import Cluster, Item, Ref, Resource
from muster.dialects.limits import exec_time
from muster.dialects.ownership import OwnerKind, OwnerSays, template_of
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.dialects.verbs import Verb, patch
from muster.dialects.wishes import STOPPED
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "Command", "commands")


class Dependency(Decoded, frozen=True):
    """Tasks that have to run first."""

    name: list[str] = []


class Task(Decoded, frozen=True):
    """Pods of one template."""

    name: str = ""
    replicas: int = 1
    template: Pod = Pod()
    depends_on: Dependency | None = None


class VolcanoJobSpec(Decoded, frozen=True):
    """What it makes."""

    queue: str = ""
    tasks: list[Task] = []


class JobState(Decoded, frozen=True):
    """Where it stands."""

    phase: str = ""


class VolcanoJobStatus(Decoded, frozen=True):
    """How far it has come."""

    state: JobState = JobState()


class VolcanoJob(Item, frozen=True):
    """A Volcano Job."""

    spec: VolcanoJobSpec = VolcanoJobSpec()
    status: VolcanoJobStatus = VolcanoJobStatus()


SERVED = Served(Resource("batch.volcano.sh", "v1alpha1", "Job", "jobs"), VolcanoJob)


def read(job: VolcanoJob, _cluster: Cluster) -> OwnerSays:
    """One role per task."""
    phase = job.status.state.phase
    return OwnerSays(
        expected=tuple(_expected(job, task) for task in job.spec.tasks),
        gang=False,  # only its PodGroup makes it one
        suspended=phase in {"Aborting", "Aborted"},
        finished=phase in {"Completed", "Terminated", "Failed"},
        limit=exec_time(job.metadata.labels),
        queue=job.spec.queue,
    )


def _expected(job: VolcanoJob, task: Task) -> Expected:
    later = task.depends_on is not None and bool(task.depends_on.name)
    return Expected(task.name.lower(), task.replicas, template_of(task.template, job), later=later)


def stop(_job: VolcanoJob, ref: Ref, why: str) -> tuple[Verb, ...]:
    """Abort: its pods go, it stays."""
    return _mark(ref, why), _command(ref, "AbortJob")


def resume(_job: VolcanoJob, ref: Ref) -> tuple[Verb, ...]:
    """Start it again."""
    return _mark(ref, None), _command(ref, "ResumeJob")


def _mark(ref: Ref, why: str | None) -> Verb:
    return patch(SERVED.resource, ref, {"metadata": {"annotations": {STOPPED: why}}})


def _command(ref: Ref, action: str) -> Verb:
    target: dict[str, Any] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": ref.name,
        "uid": ref.uid,
        "controller": True,
    }
    name = f"muster-{action.lower()}-{ref.name}"[:253]
    meta = {"name": name, "namespace": ref.namespace, "ownerReferences": [target]}
    body = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": meta,
        "target": target,
        "action": action,
    }
    return Verb(COMMANDS, ref.namespace, "", "create", body)


KIND = OwnerKind("vcjob", SERVED, read, stop, resume)
