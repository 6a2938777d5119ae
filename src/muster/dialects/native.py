"""Kubernetes' own PodGroup (`scheduling.k8s.io`, v1beta1 and v1alpha3) and `spec.schedulingGroup` of pods.

Traps: pods may come before their group, and wait for it; one gated member holds all; the policy `basic`
lets members start as they come; `minCount` may change at any time; `PodGroupInitiallyScheduled` never goes
back from True, so what is true now is said in a condition of our own.
"""

from collections.abc import Sequence

from muster.dialects.cluster import Cluster, Item, Key, Ref, Resource
from muster.dialects.composite import RESOURCE as COMPOSITE
from muster.dialects.composite import CompositePodGroup, together
from muster.dialects.groupspec import Constraints, Disruption, Gang, priority_in
from muster.dialects.limits import queue_in
from muster.dialects.podgroups import created, waiting_words
from muster.dialects.reading import Reading
from muster.dialects.spelling import Served, Spelling
from muster.dialects.terms import Hold, Problem, Terms
from muster.dialects.verbs import Condition, Verb, Words, patch, with_condition, written
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

RESOURCE = Resource("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
SCHEDULED = "PodGroupInitiallyScheduled"
SATISFIED = "muster.sh/Satisfied"


class Basic(Decoded, frozen=True):
    """No quorum."""


class Policy(Decoded, frozen=True):
    """One of both."""

    basic: Basic | None = None
    gang: Gang | None = None


class NativeSpec(Decoded, frozen=True):
    """What the group asks for."""

    parent_composite_pod_group_name: str = ""
    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints = Constraints()
    disruption_mode: Disruption = Disruption()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"


class NativeStatus(Decoded, frozen=True):
    """What was said of it."""

    conditions: list[Condition] = []


class NativePodGroup(Item, frozen=True):
    """A native PodGroup."""

    spec: NativeSpec = NativeSpec()
    status: NativeStatus = NativeStatus()


def claim(pod: Pod) -> str | None:
    """The group in the pod's spec."""
    group = pod.spec.scheduling_group
    return group.pod_group_name or None if group is not None else None


def terms(key: Key, pods: Sequence[Pod], cluster: Cluster) -> Terms:
    """The group, and what its parents ask for all of them together."""
    group = cluster.find(NativePodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        message = f"PodGroup {key.namespace}/{key.name} does not exist yet; {len(pods)} pods wait for it"
        return Terms(key.name, key.namespace, minimum=1, gates_whole=True, hold=Hold("WaitingForPodGroup", message))
    spec, meta = group.spec, group.metadata
    gang, constraint = spec.scheduling_policy.gang, spec.scheduling_constraints.key
    problems = []
    if gang is not None and gang.min_count < 1:
        message = f"PodGroup {key.name} has {gang.min_count}; write 1 or more"
        problems.append(Problem("spec.schedulingPolicy.gang.minCount", message, fatal=True))
    tree = together(key, spec.parent_composite_pod_group_name, cluster)
    return Terms(
        name=key.name,
        namespace=key.namespace,
        uid=meta.uid,
        minimum=max(gang.min_count, 1) if gang is not None else 1,
        loose=gang is None,
        gates_whole=True,
        started=any(each.type == SCHEDULED and each.status == "True" for each in group.status.conditions),
        submitted=created(meta),
        priority=tree.priority if tree.top else priority_in(spec.priority, spec.priority_class_name, cluster),
        preempts=spec.preemption_policy != "Never",
        unit_of_disruption=spec.disruption_mode.all is not None or tree.whole,
        queue=queue_in(meta.labels, meta.annotations),
        group=tree.top,
        group_size=tree.size,
        group_min=tree.least,
        required_topology=constraint or tree.topology,
        annotations=meta.annotations,
        anchor=Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, meta.uid),
        hold=tree.hold,
        problems=(*problems, *tree.problems),
    )


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """The condition Kubernetes defines, which is kept once True, and our own about now."""
    key = reading.key
    group = cluster.find(NativePodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        return ()
    conditions: list[Condition] = list(group.status.conditions)
    changed = False
    for wanted in _conditions(reading, group, words):
        found = with_condition(conditions, wanted, now)
        if found is not None:
            conditions, changed = found, True
    if not changed:
        return ()
    ref = Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, group.metadata.uid)
    return (patch(RESOURCE, ref, {"status": {"conditions": written(conditions)}}, "status"),)


def _conditions(reading: Reading, group: NativePodGroup, words: Words) -> list[Condition]:
    satisfied = reading.stage in {"running", "done"}
    counts, generation = reading.counts, group.metadata.generation
    numbers = f"{counts.running} running, {counts.bound} starting, {counts.succeeded} done of {counts.minimum}"
    reason, message = waiting_words(reading, words)
    now = Condition(
        type=SATISFIED,
        status="True" if satisfied else "False",
        reason="Satisfied" if satisfied else reason,
        message=numbers if satisfied else f"{numbers}; {message}",
        observed_generation=generation,
    )
    if reading.terms.started:
        return [now]
    native = "SchedulerError" if reading.refused is not None else "Unschedulable"
    first = Condition(
        type=SCHEDULED,
        status="True" if satisfied else "False",
        reason="Scheduled" if satisfied else native,
        message=numbers if satisfied else message,
        observed_generation=generation,
    )
    return [first, now]


SPELLING = Spelling(
    name="podgroup.scheduling.k8s.io",
    claim=claim,
    terms=terms,
    report=report,
    kinds=(
        Served(RESOURCE, NativePodGroup, older=("v1alpha3",)),
        Served(COMPOSITE, CompositePodGroup),
    ),
    columns=(
        ("Name", ".metadata.name"),
        ("Policy", ".spec.schedulingPolicy"),
        ("Workload", ".spec.workloadRef.workloadName"),
        ("Status", ".status.conditions"),
        ("Age", ".metadata.creationTimestamp"),
    ),
)
