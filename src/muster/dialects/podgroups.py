"""What both custom PodGroups share: the shape of the object, and how its status follows from the counts.

Two API groups serve a kind of the same name. They differ in the pod label, in the phases, in a field of the
status and in where the status is written, so each has a module of its own; what is alike is here. Status is
computed anew from the pods each time: counters drift.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.dialects.cluster import Cluster, Item, Key, Ref, Resource
from muster.dialects.limits import queue_in
from muster.dialects.reading import Counts, Reading
from muster.dialects.terms import Hold, Problem, Terms
from muster.dialects.verbs import Condition, Verb, Words, patch, time_text, with_condition, written
from muster.objects.decode import Decoded, ObjectError
from muster.objects.owners import ObjectMeta, seconds
from muster.objects.pods import Pod


class PodGroupSpec(Decoded, frozen=True):
    """What the gang needs."""

    min_member: int | None = None
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(Decoded, frozen=True):
    """How far it has come."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str = ""
    conditions: list[Condition] = []


class PodGroup(Item, frozen=True):
    """A PodGroup of either group."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


STARTED = frozenset({"Scheduled", "Running", "Finished", "Failed"})


def group_terms(key: Key, group: PodGroup, resource: Resource) -> Terms:
    """The terms as far as the object alone says them."""
    minimum, problems = group.spec.min_member, []
    if minimum is None:
        minimum = 1
        problems.append(Problem("spec.minMember", f"PodGroup {key.name} has none; 1 is taken, set a number"))
    if minimum < 0:
        problems.append(Problem("spec.minMember", f"PodGroup {key.name} has {minimum}; write 1 or more", True))
    meta = group.metadata
    timeout = group.spec.schedule_timeout_seconds
    return Terms(
        name=key.name,
        namespace=key.namespace,
        uid=meta.uid,
        minimum=max(minimum, 0),
        submitted=created(meta),
        timeout=float(timeout) if timeout is not None and timeout > 0 else None,
        queue=queue_in(meta.labels, meta.annotations),
        annotations=meta.annotations,
        anchor=Ref(resource.group, resource.kind, key.namespace, key.name, meta.uid),
        started=group.status.phase in STARTED,
        problems=tuple(problems),
    )


def without_group(key: Key, pods: Sequence[Pod]) -> Terms:
    """Pods came before their PodGroup: they wait for it, and for nothing else."""
    message = f"PodGroup {key.namespace}/{key.name} does not exist yet; {len(pods)} pods wait for it"
    return Terms(key.name, key.namespace, minimum=1, hold=Hold("WaitingForPodGroup", message))


def created(meta: ObjectMeta) -> float | None:
    """When an object was made, if it says so."""
    try:
        return seconds(meta.creation_timestamp)
    except ObjectError:
        return None


def occupied_by(pods: Sequence[Pod]) -> str:
    """The owners of the first pod, as `namespace/name`, sorted."""
    if not pods:
        return ""
    first = min(pods, key=lambda pod: pod.metadata.name)
    owners = first.metadata.owner_references
    return ",".join(sorted(f"{first.metadata.namespace}/{owner.name}" for owner in owners))


def status_patch(
    resource: Resource,
    group: PodGroup,
    reading: Reading,
    wanted: Mapping[str, Any],
    words: Words,
    now: float,
    subresource: str,
) -> tuple[Verb, ...]:
    """One patch of what differs, or none."""
    body = {name: value for name, value in wanted.items() if value != _current(group, name)}
    # Without a status subresource every write of ours is a new generation: to name it would be to write for ever.
    generation = group.metadata.generation if subresource else 0
    conditions = with_condition(group.status.conditions, scheduled_condition(reading, words, generation), now)
    if conditions is not None:
        body["conditions"] = written(conditions)
    if not body:
        return ()
    meta = group.metadata
    ref = Ref(resource.group, resource.kind, meta.namespace, meta.name, meta.uid)
    return (patch(resource, ref, {"status": body}, subresource),)


def scheduled_condition(reading: Reading, words: Words, generation: int) -> Condition:
    """Whether the quorum holds nodes or is done, and why not."""
    counts = reading.counts
    if reading.stage in {"running", "done"} and reading.refused is None:
        message = f"{counts.scheduled + counts.succeeded} of {counts.minimum} needed members hold nodes or are done"
        return Condition(
            type="Scheduled",
            status="True",
            reason="Scheduled",
            message=message,
            observed_generation=generation,
        )
    reason, message = waiting_words(reading, words)
    return Condition(type="Scheduled", status="False", reason=reason, message=message, observed_generation=generation)


def waiting_words(reading: Reading, words: Words) -> tuple[str, str]:
    """Why a gang has not started: what is wrong with it, what it waits for, else what the brain says."""
    if reading.refused is not None:
        return "Invalid", reading.reason
    if reading.hold is not None:
        return reading.hold.reason, reading.reason
    return words.reason or "Unschedulable", words.message or "not planned yet"


def numbers(counts: Counts) -> dict[str, Any]:
    """The counts both groups have."""
    return {"running": counts.running, "succeeded": counts.succeeded, "failed": counts.failed}


def start_time(group: PodGroup, phase: str, now: float) -> dict[str, Any]:
    """When scheduling first began; once written it stays."""
    if group.status.schedule_start_time or phase not in {"Scheduling", "Scheduled"}:
        return {}
    return {"scheduleStartTime": time_text(now)}


def member_pods(reading: Reading, cluster: Cluster) -> list[Pod]:
    """The pods of a gang as the view has them."""
    return [pod for pod in cluster.pods.get(reading.key, ()) if not pod.is_terminal]


def _current(group: PodGroup, name: str) -> Any:
    names = {"scheduleStartTime": "schedule_start_time", "occupiedBy": "occupied_by"}
    return getattr(group.status, names.get(name, name))
