"""Which gang a pod is in, and which gangs an owner makes.

A name written on the pod wins; else the highest owner that makes its pods a gang; else the pod is a gang of
one. The answer for a pod can change when its owner or a group object changes: whoever keeps an index asks
again for the pods of that owner.
"""

from collections.abc import Iterator
from typing import Any

from muster.dialects.cluster import Cluster, Key, Name, Ref, lineage, meta_of
from muster.dialects.leaderworkerset import KIND as LEADER_WORKER_SET
from muster.dialects.leaderworkerset import NAME as SET_NAME
from muster.dialects.leaderworkerset import group_of, groups
from muster.dialects.ownership import OwnerKind
from muster.dialects.table import OWNER_BY_KIND, SPELLED_BY, SPELLINGS
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

POD = "pod"


def key_of(pod: Pod, cluster: Cluster) -> Key:
    """The gang a pod is in."""
    namespace = pod.metadata.namespace
    for name, gang in claims(pod):
        return Key(name, namespace, gang)
    owner = gathering_owner(pod, cluster)
    if owner is None:
        return Key(POD, namespace, pod.metadata.name)
    kind, ref, _ = owner
    return Key(kind.name, namespace, group_of(pod) or ref.name)


def claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Every spelling that names a gang for the pod, and the name, by precedence."""
    for spelling in SPELLINGS:
        gang = spelling.claim(pod)
        if gang is not None:
            yield spelling.name, gang


def gathering_owner(pod: Pod, cluster: Cluster) -> tuple[OwnerKind, Ref, Decoded | None] | None:
    """The highest owner, if it makes its pods a gang. One not known yet does, until it says otherwise."""
    found = top_owner(pod, cluster)
    if found is None:
        return None
    kind, ref, item = found
    if item is not None and not kind.read(_any(item), cluster).gang:
        return None
    return kind, ref, item


def top_owner(pod: Pod, cluster: Cluster) -> tuple[OwnerKind, Ref, Decoded | None] | None:
    """The highest controller of a kind in the table."""
    labels = pod.metadata.labels
    if SET_NAME in labels:
        resource = LEADER_WORKER_SET.served.resource
        ref = Ref(resource.group, resource.kind, pod.metadata.namespace, labels[SET_NAME])
        item = cluster.deref(ref)
        uid = meta_of(item).uid if item is not None else ""
        return LEADER_WORKER_SET, Ref(ref.group, ref.kind, ref.namespace, ref.name, uid), item
    found = None
    for ref, item in lineage(pod.metadata, cluster):
        kind = OWNER_BY_KIND.get((ref.group, ref.kind))
        if kind is not None:
            found = kind, ref, item
    return found


def grouping(ref: Ref, cluster: Cluster) -> tuple[Name, Key] | None:
    """For a group object that a controller made: the highest owner it was made for, and the gang's key.

    Controllers that make group objects put the name on pods as they create them, not into their owner's
    template, so that this is how an owner without pods is known to make that gang.
    """
    dialect, item = SPELLED_BY.get((ref.group, ref.kind)), cluster.deref(ref)
    if dialect is None or item is None:
        return None
    owners = [each for each, _ in lineage(meta_of(item), cluster) if (each.group, each.kind) in OWNER_BY_KIND]
    return (owners[-1].full_name, Key(dialect, ref.namespace, ref.name)) if owners else None


def keys_of(ref: Ref, cluster: Cluster) -> tuple[Key, ...]:
    """The gangs an owner makes, whether or not their pods exist; none if a higher owner speaks for it."""
    kind, item = OWNER_BY_KIND.get((ref.group, ref.kind)), cluster.deref(ref)
    if kind is None or item is None:
        return ()
    if kind is not LEADER_WORKER_SET and SET_NAME in meta_of(item).labels:
        return ()  # its worker sets are controlled by the leader pods, which no view of owners holds
    if any((above.group, above.kind) in OWNER_BY_KIND for above, _ in lineage(meta_of(item), cluster)):
        return ()
    says = kind.read(_any(item), cluster)
    named = {claim for each in says.expected for claim in claims(each.template)}
    keys = [Key(name, ref.namespace, gang) for name, gang in sorted(named)]
    unnamed = any(not list(claims(each.template)) for each in says.expected) or not says.expected
    grouped = sorted(set(cluster.grouped.get(ref.full_name, ())) - set(keys))
    keys += grouped
    if says.gang and unnamed and not grouped:
        names = groups(_any(item)) if kind is LEADER_WORKER_SET else (ref.name,)
        keys += [Key(kind.name, ref.namespace, name) for name in names]
    return tuple(keys)


def _any(item: Decoded) -> Any:
    """The table pairs each kind with the type it decodes into."""
    return item
