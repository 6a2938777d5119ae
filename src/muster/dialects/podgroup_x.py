"""`scheduling.x-k8s.io/v1alpha1` PodGroup: scheduler-plugins, and ACK from 1.31 on.

Pods carry the label `scheduling.x-k8s.io/pod-group`. Status is a subresource, and there is no count of
scheduled pods in it.
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.dialects.cluster import Cluster, Key, Resource
from muster.dialects.podgroups import (
    PodGroup,
    group_terms,
    member_pods,
    numbers,
    occupied_by,
    status_patch,
    without_group,
)
from muster.dialects.reading import Counts, Reading
from muster.dialects.spelling import Served, Spelling
from muster.dialects.terms import Problem, Terms
from muster.dialects.verbs import Verb, Words
from muster.objects.pods import Pod

LABEL = "scheduling.x-k8s.io/pod-group"
RESOURCE = Resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")


def claim(pod: Pod) -> str | None:
    """The PodGroup a pod names."""
    return pod.metadata.labels.get(LABEL) or None


def terms(key: Key, pods: Sequence[Pod], cluster: Cluster) -> Terms:
    """The PodGroup; a minimum below 1 is refused here, as its schema does."""
    group = cluster.find(PodGroup, RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is None:
        return without_group(key, pods)
    found = group_terms(key, group, RESOURCE)
    if found.minimum == 0:
        problem = Problem("spec.minMember", f"PodGroup {key.name} has 0; write 1 or more", fatal=True)
        return replace(found, problems=(*found.problems, problem))
    return found


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """Counts, phase and why it waits."""
    group = cluster.find(PodGroup, RESOURCE.group, "PodGroup", reading.key.namespace, reading.key.name)
    if group is None or group.status.phase == "Finished":
        return ()
    pods = member_pods(reading, cluster)
    wanted = {"phase": phase(reading.counts, group.spec.min_member or 1), **numbers(reading.counts)}
    if wanted["phase"] != "Pending" and not group.status.occupied_by and occupied_by(pods):
        wanted["occupiedBy"] = occupied_by(pods)
    return status_patch(RESOURCE, group, reading, wanted, words, now, "status")


def phase(counts: Counts, minimum: int) -> str:
    """The phases of scheduler-plugins. A failure with a met quorum shows as Failed there, so it does here."""
    done = counts.succeeded + counts.running
    if counts.present + counts.failed < minimum:
        return "Pending"
    if counts.succeeded >= minimum:
        return "Finished"
    if counts.failed and counts.failed + done >= minimum:
        return "Failed"
    return "Running" if done >= minimum else "Scheduling"


SPELLING = Spelling(
    name="podgroup.scheduling.x-k8s.io",
    claim=claim,
    terms=terms,
    report=report,
    kinds=(Served(RESOURCE, PodGroup),),
    columns=(
        ("Phase", ".status.phase"),
        ("MinMember", ".spec.minMember"),
        ("Running", ".status.running"),
        ("Succeeded", ".status.succeeded"),
        ("Failed", ".status.failed"),
        ("Age", ".metadata.creationTimestamp"),
    ),
)
