"""Which gangs are to be read anew when an object changes, so that an event wakes those it concerns alone.

Pods are not asked about here: a pod concerns the gang it is in, and the one it was in before.
"""

from collections.abc import Iterator

from muster.dialects import composite, native
from muster.dialects.cluster import Cluster, Key, Ref, lineage, meta_of
from muster.dialects.membership import keys_of
from muster.dialects.native import NativePodGroup
from muster.dialects.table import OWNER_BY_KIND, SPELLED_BY
from muster.dialects.volumes import Claim
from muster.objects.pods import claim_names


def touched(ref: Ref, cluster: Cluster) -> tuple[Key, ...]:
    """The gangs that may read otherwise than before, now that this object came, changed or went."""
    kind = (ref.group, ref.kind)
    if kind == (composite.RESOURCE.group, composite.RESOURCE.kind):
        return tuple(sorted(_family(ref.namespace, ref.name, cluster)))
    if kind in SPELLED_BY:
        own = Key(SPELLED_BY[kind], ref.namespace, ref.name)
        return tuple(sorted({own, *_siblings(own, cluster)}))
    if kind in OWNER_BY_KIND:
        return tuple(sorted({*_made(ref, cluster), *_was(ref, cluster)}))
    if kind == ("", "PersistentVolumeClaim"):
        return tuple(sorted(_mounting({ref.name}, ref.namespace, cluster)))
    if kind == ("", "PersistentVolume"):
        return tuple(sorted(_mounting_volume(ref.name, cluster)))
    return ()


def _siblings(key: Key, cluster: Cluster) -> Iterator[Key]:
    """A native group that has a parent changes what its siblings wait for."""
    if key.dialect != native.SPELLING.name:
        return
    group = cluster.find(NativePodGroup, native.RESOURCE.group, "PodGroup", key.namespace, key.name)
    if group is not None and group.spec.parent_composite_pod_group_name:
        yield from _family(key.namespace, group.spec.parent_composite_pod_group_name, cluster)


def _family(namespace: str, name: str, cluster: Cluster) -> Iterator[Key]:
    """All leaves below the root of a composite group."""
    for leaf in composite.leaves(namespace, composite.root_of(namespace, name, cluster), cluster):
        yield Key(native.SPELLING.name, namespace, leaf)


def _made(ref: Ref, cluster: Cluster) -> Iterator[Key]:
    """What the owner makes, or what its own highest owner makes of it."""
    yield from keys_of(ref, cluster)
    item = cluster.deref(ref)
    for above, _ in lineage(meta_of(item), cluster) if item is not None else ():
        yield from keys_of(above, cluster)


def _was(ref: Ref, cluster: Cluster) -> Iterator[Key]:
    """The gang it made before it said otherwise, if pods or owners are still indexed under it."""
    own = Key(OWNER_BY_KIND[ref.group, ref.kind].name, ref.namespace, ref.name)
    if own in cluster.pods or own in cluster.owners:
        yield own


def _mounting(claims: set[str], namespace: str, cluster: Cluster) -> Iterator[Key]:
    for key, pods in cluster.pods.items():
        if key.namespace == namespace and any(claims & set(claim_names(pod)) for pod in pods):
            yield key


def _mounting_volume(volume: str, cluster: Cluster) -> Iterator[Key]:
    by_namespace: dict[str, set[str]] = {}
    for item in cluster.objects.get(("", "PersistentVolumeClaim"), {}).values():
        if isinstance(item, Claim) and item.spec.volume_name == volume:
            by_namespace.setdefault(item.metadata.namespace, set()).add(item.metadata.name)
    for namespace, names in sorted(by_namespace.items()):
        yield from _mounting(names, namespace, cluster)
