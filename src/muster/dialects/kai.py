"""KAI: PodGroup `scheduling.run.ai/v2alpha2`, named by the bare annotation `pod-group-name`.

Subgroups are roles with a minimum of their own; topology levels are node label keys, as ours. The status is
KAI's own book-keeping, except for the condition that says why a group waits.
"""

from collections.abc import Sequence
from typing import Any

from muster.dialects.cluster import Cluster, Item, Key, Ref, Resource
from muster.dialects.limits import class_value
from muster.dialects.podgroups import created, waiting_words
from muster.dialects.reading import Reading
from muster.dialects.spelling import Served, Spelling
from muster.dialects.terms import Hold, Terms
from muster.dialects.verbs import Verb, Words, patch, time_text
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

NAME = "pod-group-name"
RESOURCE = Resource("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups")


class KaiTopology(Decoded, frozen=True):
    """Closeness by levels."""

    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(Decoded, frozen=True):
    """Part of a group."""

    name: str = ""
    min_member: int = 0


class KaiSpec(Decoded, frozen=True):
    """What the group asks for."""

    min_member: int = 0
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: KaiTopology = KaiTopology()
    sub_groups: list[SubGroup] = []


class SchedulingCondition(Decoded, frozen=True):
    """Why it waits."""

    type: str = ""
    status: str = ""
    message: str = ""


class KaiStatus(Decoded, frozen=True):
    """The part of the status a scheduler writes."""

    scheduling_conditions: list[SchedulingCondition] = []


class KaiPodGroup(Item, frozen=True):
    """A KAI PodGroup."""

    spec: KaiSpec = KaiSpec()
    status: KaiStatus = KaiStatus()


def claim(pod: Pod) -> str | None:
    """The group by annotation."""
    return pod.metadata.annotations.get(NAME) or None


def terms(key: Key, pods: Sequence[Pod], cluster: Cluster) -> Terms:
    """The group object, which KAI's grouper makes from the pods' owner."""
    group = cluster.find(KaiPodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        message = f"PodGroup {key.namespace}/{key.name} does not exist yet; {len(pods)} pods wait for it"
        return Terms(key.name, key.namespace, minimum=1, hold=Hold("WaitingForPodGroup", message))
    spec, meta = group.spec, group.metadata
    parts = {each.name.lower(): each.min_member for each in spec.sub_groups if each.min_member > 0}
    class_name = spec.priority_class_name
    return Terms(
        name=key.name,
        namespace=key.namespace,
        uid=meta.uid,
        minimum=max(spec.min_member, sum(parts.values())),
        role_minimum=parts,
        loose=spec.min_member < 1 and not parts,
        submitted=created(meta),
        priority=class_value(class_name, cluster) if class_name and not pods else None,
        unit_of_disruption=spec.preemptibility != "non-preemptible",
        queue=spec.queue,
        required_topology=spec.topology_constraint.required_topology_level,
        preferred_topology=spec.topology_constraint.preferred_topology_level,
        annotations=meta.annotations,
        anchor=Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, meta.uid),
    )


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """The one condition KAI's users look at; it goes when the group runs."""
    key = reading.key
    group = cluster.find(KaiPodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        return ()
    wanted = [] if reading.stage in {"running", "done"} else [_condition(reading, words, now)]
    old = [(each.status, each.message) for each in group.status.scheduling_conditions]
    if old == [(each["status"], each["message"]) for each in wanted]:
        return ()
    ref = Ref(RESOURCE.group, RESOURCE.kind, key.namespace, key.name, group.metadata.uid)
    return (patch(RESOURCE, ref, {"status": {"schedulingConditions": wanted}}, "status"),)


def _condition(reading: Reading, words: Words, now: float) -> dict[str, Any]:
    reason, message = waiting_words(reading, words)
    return {
        "type": "UnschedulableOnNodePool",
        "nodePool": "default",
        "status": "True",
        "reason": "Unschedulable",
        "message": message,
        "reasons": [{"reason": reason, "message": message}],
        "lastTransitionTime": time_text(now),
    }


SPELLING = Spelling(name="kai", claim=claim, terms=terms, report=report, kinds=(Served(RESOURCE, KaiPodGroup),))
