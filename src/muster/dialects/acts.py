"""The verbs of a gang, whatever its dialect: stop, resume, resize, evict, report, and remember a promise.

A gang is stopped through its owners. Where an owner cannot be stopped, or there is none, the members that
hold nodes are evicted; whether that is bearable for a gang `tolerates_eviction` tells.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from muster.dialects.cluster import Cluster, Ref, lineage
from muster.dialects.job import Job
from muster.dialects.membership import top_owner
from muster.dialects.ownership import OwnerKind
from muster.dialects.reading import HOLDING, Reading
from muster.dialects.table import OWNER_BY_KIND, RESOURCES, SPELLING_BY_NAME
from muster.dialects.verbs import PODS, Verb, Words, evict, patch
from muster.dialects.volumes import claims_to_place
from muster.dialects.wishes import PROMISE
from muster.model.gang import Reservation
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_REPLICATED = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "LeaderWorkerSet"})


def stop(reading: Reading, cluster: Cluster, why: str) -> tuple[Verb, ...]:
    """Free all nodes of the gang."""
    verbs: list[Verb] = []
    for kind, ref, item in _owners(reading, cluster):
        if kind.stop is not None:
            verbs += kind.stop(item, ref, why)
    left = [pod.metadata.uid for pod in _pods(reading, cluster) if not _stopped_by_owner(pod, cluster)]
    return (*verbs, *evictions(reading, left))


def resume(reading: Reading, cluster: Cluster) -> tuple[Verb, ...]:
    """Let the owners that Muster stopped create their pods again."""
    return tuple(
        verb
        for kind, ref, item in _owners(reading, cluster)
        if kind.resume is not None
        for verb in kind.resume(item, ref)
    )


def resize(reading: Reading, cluster: Cluster, members: int) -> tuple[Verb, ...]:
    """Another number of members in the role that bends; nothing without exactly one owner for it."""
    able = [each for each in _owners(reading, cluster) if each[0].resize is not None]
    if len(able) != 1 or len(reading.owners) != 1:
        return ()
    kind, ref, item = able[0]
    return kind.resize(item, ref, members) if kind.resize is not None else ()


def evictions(reading: Reading, uids: Collection[str]) -> tuple[Verb, ...]:
    """Evict these members as far as they hold nodes, the last ranks first."""
    wanted = set(uids)
    chosen = [each for each in reading.members if each.uid in wanted and each.state in HOLDING]
    return tuple(evict(reading.terms.namespace, each.name, each.uid) for each in reversed(chosen))


def report(reading: Reading, cluster: Cluster, words: Words, now: float) -> tuple[Verb, ...]:
    """Bring the group object's status up to date; nothing where it is, or where there is no such object."""
    spelling = SPELLING_BY_NAME.get(reading.key.dialect)
    return spelling.report(reading, cluster, words, now) if spelling is not None else ()


def remember(reading: Reading, cluster: Cluster, promise: Reservation | None) -> tuple[Verb, ...]:
    """Write a promise where a new leader finds it: on group object, else owner, else first pod."""
    anchor = reading.terms.anchor or next(iter(_first_pod(reading, cluster)), None)
    resource = RESOURCES.get((anchor.group, anchor.kind), PODS) if anchor is not None else None
    if anchor is None or resource is None:
        return ()
    text = write_promise(promise) if promise is not None else None
    return (patch(resource, anchor, {"metadata": {"annotations": {PROMISE: text}}}),)


def place_claims(pod: Pod, node: str, cluster: Cluster) -> tuple[Verb, ...]:
    """Say on claims that wait for their first pod where it will run; bind the pod once they have volumes."""
    namespace = pod.metadata.namespace
    body = {"metadata": {"annotations": {SELECTED_NODE: node}}}
    resource = RESOURCES["", "PersistentVolumeClaim"]
    refs = (Ref("", resource.kind, namespace, name) for name in claims_to_place(pod, cluster))
    return tuple(patch(resource, ref, body) for ref in refs)


def write_promise(promise: Reservation) -> str:
    """A reservation as text; `wishes.read_promise` reads it back."""
    return json.dumps(asdict(promise), sort_keys=True)


def tolerates_eviction(reading: Reading, cluster: Cluster) -> bool:
    """Whether members may be evicted one by one without their owner counting failures."""
    pods = list(_pods(reading, cluster))
    return bool(pods) and all(_tolerates(pod, cluster) for pod in pods)


def _tolerates(pod: Pod, cluster: Cluster) -> bool:
    for ref, item in lineage(pod.metadata, cluster):
        if ref.kind in _REPLICATED:
            return True
        if isinstance(item, Job):
            return item.spec.ignores_disruption
    return False


def _owners(reading: Reading, cluster: Cluster) -> Iterator[tuple[OwnerKind, Ref, Any]]:
    for ref in reading.owners:
        kind, item = OWNER_BY_KIND.get((ref.group, ref.kind)), cluster.deref(ref)
        if kind is not None and item is not None:
            yield kind, ref, item


def _pods(reading: Reading, cluster: Cluster) -> Iterator[Pod]:
    yield from cluster.pods.get(reading.key, ())


def _stopped_by_owner(pod: Pod, cluster: Cluster) -> bool:
    owner: tuple[OwnerKind, Ref, Decoded | None] | None = top_owner(pod, cluster)
    return owner is not None and owner[2] is not None and owner[0].stop is not None


def _first_pod(reading: Reading, cluster: Cluster) -> Iterator[Ref]:
    for pod in sorted(_pods(reading, cluster), key=lambda each: each.metadata.name):
        if not pod.is_terminal:
            yield Ref("", "Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
