"""Persistent volumes: which nodes they tie a pod to, and when a pod must wait for one.

A claim that is bound ties the pod to where its volume can be attached. A claim that waits for its first
consumer ties it to nothing yet: the scheduler picks the node and says so on the claim.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from muster.dialects.cluster import Cluster, Item
from muster.dialects.terms import Hold, Problem
from muster.model.rules import NodeTerm, Requirement
from muster.objects.decode import Decoded
from muster.objects.pods import Pod, claim_names
from muster.objects.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement

_ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


class ClaimSpec(Decoded, frozen=True):
    """What a claim asks for and which volume it got."""

    volume_name: str = ""
    storage_class_name: str = ""
    access_modes: list[str] = []


class Claim(Item, frozen=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()


class VolumeNodeAffinity(Decoded, frozen=True):
    """The nodes a volume can be attached to."""

    required: NodeSelector | None = None


class VolumeSpec(Decoded, frozen=True):
    """Where a volume lives."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Item, frozen=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()


class StorageClass(Item, frozen=True):
    """A StorageClass: whether its volumes wait for the first pod."""

    volume_binding_mode: str = msgspec.field(default="Immediate")


def volume_ties(pod: Pod, cluster: Cluster) -> Iterator[tuple[NodeTerm, ...]]:
    """Per bound volume the node terms of which one must hold."""
    for claim in claims_of(pod, cluster):
        volume = cluster.find(PersistentVolume, "", "PersistentVolume", "", claim.spec.volume_name)
        if volume is None:
            continue
        affinity = volume.spec.node_affinity and volume.spec.node_affinity.required
        if affinity:
            yield tuple(node_term(each) for each in affinity.node_selector_terms)
        for key in _ZONE_LABELS:
            if key in volume.metadata.labels:
                values = tuple(volume.metadata.labels[key].split("__"))
                yield (NodeTerm((Requirement(key, "In", values),)),)


def claims_of(pod: Pod, cluster: Cluster) -> Iterator[Claim]:
    """The claims a pod mounts, as far as they exist."""
    for name in claim_names(pod):
        found = cluster.find(Claim, "", "PersistentVolumeClaim", pod.metadata.namespace, name)
        if found is not None:
            yield found


def waits_for_volume(pods: Iterable[Pod], cluster: Cluster) -> Hold | None:
    """A claim that does not exist, or one whose volume is still being made."""
    for pod in pods:
        for name in claim_names(pod):
            claim = cluster.find(Claim, "", "PersistentVolumeClaim", pod.metadata.namespace, name)
            if claim is None:
                return Hold("WaitingForVolume", f"claim {name} of pod {pod.metadata.name} does not exist yet")
            if not claim.spec.volume_name and not _binds_late(claim, cluster):
                return Hold("WaitingForVolume", f"claim {name} of pod {pod.metadata.name} has no volume yet")
    return None


def claims_to_place(pod: Pod, cluster: Cluster) -> tuple[str, ...]:
    """Claims whose volume is made only once the pod's node is known: it has to be said on them before binding."""
    return tuple(
        claim.metadata.name
        for claim in claims_of(pod, cluster)
        if not claim.spec.volume_name and _binds_late(claim, cluster)
    )


def shared_single_claims(pods: Sequence[Pod], cluster: Cluster) -> Iterator[Problem]:
    """Members that mount one ReadWriteOncePod claim can never run together."""
    users: dict[str, list[str]] = {}
    for pod in pods:
        for claim in claims_of(pod, cluster):
            if "ReadWriteOncePod" in claim.spec.access_modes:
                users.setdefault(claim.metadata.name, []).append(pod.metadata.name)
    for claim_name, pod_names in sorted(users.items()):
        if len(pod_names) > 1:
            two = " and ".join(sorted(pod_names)[:2])
            message = f"pods {two} mount claim {claim_name}, which is ReadWriteOncePod; give each its own claim"
            yield Problem("spec.volumes", message, fatal=True)


def _binds_late(claim: Claim, cluster: Cluster) -> bool:
    name = claim.spec.storage_class_name
    found = cluster.find(StorageClass, "storage.k8s.io", "StorageClass", "", name)
    return found is not None and found.volume_binding_mode == "WaitForFirstConsumer"


def node_term(written: NodeSelectorTerm) -> NodeTerm:
    """One node selector term; the brain lets a malformed one match nothing."""
    return NodeTerm(_requirements(written.match_expressions), _requirements(written.match_fields))


def _requirements(written: Iterable[SelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values)) for each in written)  # type: ignore[arg-type]
