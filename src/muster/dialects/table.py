"""The one table: spellings by precedence, owners by kind, and what to watch for them."""

from muster.dialects import (
    armada,
    job,
    jobset,
    kai,
    koordinator,
    kubeflow,
    kueue,
    leaderworkerset,
    native,
    podgroup_sigs,
    podgroup_x,
    ray,
    statefulset,
    trainjob,
    vcjob,
    volcano,
    yunikorn,
)
from muster.dialects.cluster import Item, Resource
from muster.dialects.limits import PriorityClass
from muster.dialects.ownership import OwnerKind
from muster.dialects.spelling import Served, Spelling
from muster.dialects.volumes import Claim, PersistentVolume, StorageClass

SPELLINGS: tuple[Spelling, ...] = (
    native.SPELLING,
    podgroup_sigs.SPELLING,
    koordinator.SPELLING,
    podgroup_x.SPELLING,
    volcano.SPELLING,
    kai.SPELLING,
    kueue.SPELLING,
    yunikorn.SPELLING,
    armada.SPELLING,
)
"""The first that claims a pod names its gang."""

OWNERS: tuple[OwnerKind, ...] = (
    job.KIND,
    jobset.KIND,
    trainjob.KIND,
    *kubeflow.KINDS,
    *ray.KINDS,
    leaderworkerset.KIND,
    statefulset.KIND,
    vcjob.KIND,
)

SPELLING_BY_NAME = {each.name: each for each in SPELLINGS}
SPELLED_BY = {
    (served.resource.group, served.resource.kind): spelling.name
    for spelling in SPELLINGS
    for served in spelling.kinds
    if served.resource.kind == "PodGroup"
}
OWNER_BY_NAME = {each.name: each for each in OWNERS}
OWNER_BY_KIND = {(each.served.resource.group, each.served.resource.kind): each for each in OWNERS}

SURROUNDINGS: tuple[Served, ...] = (
    Served(Resource("", "v1", "Namespace", "namespaces", namespaced=False), Item),
    Served(Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False), PersistentVolume),
    Served(Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"), Claim),
    Served(Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False), StorageClass),
    Served(
        Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
        PriorityClass,
    ),
)
"""What gangs refer to without being part of it."""

KINDS: tuple[Served, ...] = (
    *(served for spelling in SPELLINGS for served in spelling.kinds),
    *(owner.served for owner in OWNERS),
    *SURROUNDINGS,
)
"""Everything worth watching where the cluster serves it, pods and nodes aside."""

RESOURCES = {(each.resource.group, each.resource.kind): each.resource for each in KINDS}
