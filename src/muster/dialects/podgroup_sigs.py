"""`scheduling.sigs.k8s.io/v1alpha1` PodGroup: Alibaba ACS, older ACK, Koordinator.

Pods carry the label `pod-group.scheduling.sigs.k8s.io`, which is the whole key. The object has no status
subresource: status is a patch of the object itself, unless the installed definition declares one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from muster.dialects.cluster import Cluster, Key, Resource
from muster.dialects.koordinator import annotated_terms
from muster.dialects.podgroups import (
    PodGroup,
    group_terms,
    member_pods,
    numbers,
    occupied_by,
    start_time,
    status_patch,
    without_group,
)
from muster.dialects.reading import Counts, Reading
from muster.dialects.spelling import Served, Spelling
from muster.dialects.terms import Terms
from muster.dialects.verbs import Verb, Words
from muster.objects.pods import Pod

LABEL = "pod-group.scheduling.sigs.k8s.io"
RESOURCE = Resource("scheduling.sigs.k8s.io", "v1alpha1", "PodGroup", "podgroups")


def claim(pod: Pod) -> str | None:
    """The PodGroup a pod names."""
    return pod.metadata.labels.get(LABEL) or None


def terms(key: Key, pods: Sequence[Pod], cluster: Cluster) -> Terms:
    """The PodGroup, and what Koordinator's annotations on it add."""
    group = cluster.find(PodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        return without_group(key, pods)
    found = annotated_terms(group_terms(key, group, RESOURCE), group.metadata)
    # waiting-time is the pods' way; with an object its own field counts.
    timeout = float(max(group.spec.schedule_timeout_seconds or 0, 0)) or None
    return replace(found, timeout=timeout, loose=found.minimum == 0)


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """Counts, phase and why it waits."""
    group = cluster.find(PodGroup, RESOURCE.group, "PodGroup", reading.key.namespace, reading.key.name)
    if group is None or group.status.phase == "Finished":
        return ()
    pods = member_pods(reading, cluster)
    phase_now = phase(reading.counts, group.spec.min_member or 0)
    wanted: dict[str, Any] = {
        "phase": phase_now,
        "scheduled": reading.counts.scheduled + reading.counts.succeeded,
        **numbers(reading.counts),
        **start_time(group, phase_now, now),
    }
    if phase_now != "Pending" and not group.status.occupied_by and occupied_by(pods):
        wanted["occupiedBy"] = occupied_by(pods)
    subresource = "status" if (RESOURCE.group, "PodGroup") in cluster.with_status else ""
    return status_patch(RESOURCE, group, reading, wanted, words, now, subresource)


def phase(counts: Counts, minimum: int) -> str:
    """Koordinator's phases, from the counts alone. Without a minimum it stays Pending."""
    scheduled, done = counts.scheduled + counts.succeeded, counts.succeeded + counts.running
    if minimum < 1 or counts.present + counts.failed == 0:
        return "Pending"
    if counts.succeeded >= minimum:
        return "Finished"
    if counts.failed and counts.failed + done >= minimum:
        return "Failed"
    if done >= minimum:
        return "Running"
    if scheduled >= minimum:
        return "Scheduled"
    if scheduled:
        return "Scheduling"
    return "PreScheduling" if counts.present >= minimum else "Pending"


SPELLING = Spelling(
    name="podgroup.scheduling.sigs.k8s.io",
    claim=claim,
    terms=terms,
    report=report,
    kinds=(Served(RESOURCE, PodGroup),),
)
