"""Volcano: PodGroup `scheduling.volcano.sh/v1beta1`, named by annotations of pods.

Trap: Volcano's job controller creates no pod while the PodGroup is Pending; the scheduler must say Inqueue
first. So a group that is in order goes Inqueue at once, and its pods then wait as any others.
"""

from collections.abc import Sequence
from typing import Any

from muster.dialects.cluster import Cluster, Item, Key, Ref, Resource
from muster.dialects.limits import class_value
from muster.dialects.podgroups import created, waiting_words
from muster.dialects.reading import Counts, Reading
from muster.dialects.spelling import Served, Spelling
from muster.dialects.terms import Hold, Problem, Terms
from muster.dialects.values import Values, count, duration
from muster.dialects.verbs import Condition, Verb, Words, patch, with_condition, written
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
SLA = "volcano.sh/sla-waiting-time"
RESOURCE = Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")


class NetworkTopology(Decoded, frozen=True):
    """Closeness in tiers of HyperNodes."""

    mode: str = ""
    highest_tier_name: str = ""


class VolcanoSpec(Decoded, frozen=True):
    """What the group asks for."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    network_topology: NetworkTopology | None = None


class VolcanoStatus(Decoded, frozen=True):
    """How far it has come."""

    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: list[Condition] = []


class VolcanoPodGroup(Item, frozen=True):
    """A Volcano PodGroup."""

    spec: VolcanoSpec = VolcanoSpec()
    status: VolcanoStatus = VolcanoStatus()


def claim(pod: Pod) -> str | None:
    """The group by annotation; the first of the two is the one everybody still writes."""
    return next((pod.metadata.annotations[key] for key in NAMES if pod.metadata.annotations.get(key)), None)


def terms(key: Key, pods: Sequence[Pod], cluster: Cluster) -> Terms:
    """The group object; without one the minimum on the pods."""
    group = cluster.find(VolcanoPodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        return _from_pods(key, pods)
    spec, meta = group.spec, group.metadata
    values = Values(f"PodGroup {key.name}", meta.annotations)
    waiting = values.read(SLA, duration)
    problems = list(values.problems)
    network = spec.network_topology
    if network is not None and network.mode == "hard":
        message = "tiers of HyperNodes are not known here; say muster.sh/topology-required: NODE-LABEL"
        problems.append(Problem("spec.networkTopology", message))
    class_name = spec.priority_class_name
    return Terms(
        name=key.name,
        namespace=key.namespace,
        uid=meta.uid,
        minimum=max(spec.min_member, sum(spec.min_task_member.values()), 1),
        role_minimum={name.lower(): number for name, number in spec.min_task_member.items()},
        submitted=created(meta),
        timeout=waiting,
        priority=None if not class_name or pods else class_value(class_name, cluster),
        queue=spec.queue,
        annotations=meta.annotations,
        anchor=Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, meta.uid),
        problems=tuple(problems),
    )


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """Phase, counts, and Scheduled or Unschedulable."""
    key = reading.key
    group = cluster.find(VolcanoPodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None or group.status.phase == "Completed":
        return ()
    counts, old = reading.counts, group.status
    wanted: dict[str, Any] = {
        "phase": phase(counts, reading),
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
    }
    body = {name: value for name, value in wanted.items() if value != getattr(old, name)}
    conditions = with_condition(old.conditions, _condition(reading, words), now)
    if conditions is not None:
        body["conditions"] = written(conditions)
    if not body:
        return ()
    ref = Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, group.metadata.uid)
    return (patch(RESOURCE, ref, {"status": body}, "status"),)


def phase(counts: Counts, reading: Reading) -> str:
    """Volcano's phases: Unknown is a group that runs with less than its quorum."""
    if reading.refused is not None and not counts.scheduled:
        return "Pending"
    if reading.stage == "done":
        return "Completed"
    if reading.stage == "partial":
        return "Unknown"
    return "Running" if reading.stage == "running" else "Inqueue"


def _condition(reading: Reading, words: Words) -> Condition:
    if reading.stage in {"running", "done"}:
        return Condition(type="Scheduled", status="True", reason="tasks in gang are ready to be scheduled")
    reason, message = waiting_words(reading, words)
    native = "NotEnoughTasks" if reason == "WaitingForMembers" else "NotEnoughResources"
    return Condition(type="Unschedulable", status="True", reason=native, message=message)


def _from_pods(key: Key, pods: Sequence[Pod]) -> Terms:
    eldest = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
    for pod in eldest:
        values = Values(f"pod {pod.metadata.name}", pod.metadata.annotations)
        minimum = values.read(MIN_MEMBER, count)
        if minimum is not None:
            queue = pod.metadata.annotations.get("scheduling.volcano.sh/queue-name", "")
            return Terms(key.name, key.namespace, minimum=minimum, queue=queue)
        if values.problems:
            return Terms(key.name, key.namespace, minimum=1, problems=tuple(values.problems))
    message = f"PodGroup {key.namespace}/{key.name} does not exist yet; {len(pods)} pods wait for it"
    return Terms(key.name, key.namespace, minimum=1, hold=Hold("WaitingForPodGroup", message))


SPELLING = Spelling(name="volcano", claim=claim, terms=terms, report=report, kinds=(Served(RESOURCE, VolcanoPodGroup),))
