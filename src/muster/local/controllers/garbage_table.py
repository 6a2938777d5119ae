"""Garbage collection in the table of controllers: how owners of any kind are found, and which changes
matter to whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.controllers import fields as f
from muster.local.controllers import garbage
from muster.local.controllers.actions import Action
from muster.local.controllers.mirror import Key, Mirror

BUILT_IN = {
    ("", "Pod"): "pods",
    ("", "Node"): "nodes",
    ("", "Namespace"): "namespaces",
    ("", "Service"): "services",
    ("", "Endpoints"): "endpoints",
    ("", "ConfigMap"): "configmaps",
    ("", "Secret"): "secrets",
    ("", "ServiceAccount"): "serviceaccounts",
    ("", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("", "ReplicationController"): "replicationcontrollers",
    ("", "ResourceQuota"): "resourcequotas",
    ("", "LimitRange"): "limitranges",
    ("", "PodTemplate"): "podtemplates",
    ("apps", "Deployment"): "apps/deployments",
    ("apps", "ReplicaSet"): "apps/replicasets",
    ("apps", "StatefulSet"): "apps/statefulsets",
    ("apps", "DaemonSet"): "apps/daemonsets",
    ("apps", "ControllerRevision"): "apps/controllerrevisions",
    ("batch", "Job"): "batch/jobs",
    ("batch", "CronJob"): "batch/cronjobs",
    ("policy", "PodDisruptionBudget"): "policy/poddisruptionbudgets",
    ("coordination.k8s.io", "Lease"): "coordination.k8s.io/leases",
    ("discovery.k8s.io", "EndpointSlice"): "discovery.k8s.io/endpointslices",
    ("networking.k8s.io", "Ingress"): "networking.k8s.io/ingresses",
    ("networking.k8s.io", "NetworkPolicy"): "networking.k8s.io/networkpolicies",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscaling/horizontalpodautoscalers",
    ("rbac.authorization.k8s.io", "Role"): "rbac.authorization.k8s.io/roles",
    ("rbac.authorization.k8s.io", "RoleBinding"): "rbac.authorization.k8s.io/rolebindings",
    ("scheduling.k8s.io", "PodGroup"): "scheduling.k8s.io/podgroups",
    ("scheduling.k8s.io", "CompositePodGroup"): "scheduling.k8s.io/compositepodgroups",
    ("scheduling.k8s.io", "Workload"): "scheduling.k8s.io/workloads",
}
_CUSTOM = "apiextensions.k8s.io/customresourcedefinitions"


def keys(resource: str, obj: Object, mirror: Mirror) -> Iterable[Key]:
    """An object with owners, its owners when it blocks them, and its dependents when it is going or gone."""
    if obj["metadata"].get("ownerReferences"):
        yield _key(resource, obj)
        for ref in obj["metadata"]["ownerReferences"]:
            owner = mirror.by_uid(ref["uid"])
            if owner and f.going(owner[1]):
                yield _key(*owner)
    gone = mirror.get(resource, f.namespace(obj), f.name(obj)) is None
    if gone or f.going(obj):
        yield _key(resource, obj)
        for kind, dependent in mirror.dependents(f.uid(obj)):
            yield _key(kind, dependent)


def collector(access: Access) -> Callable[[Key, Mirror, float], list[Action]]:
    def sync(key: Key, mirror: Mirror, _now: float) -> list[Action]:
        resource, _, namespace = key[0].partition("|")
        obj = mirror.get(resource, namespace, key[1])
        if obj is None:
            return []
        dependents = list(mirror.dependents(f.uid(obj)))
        if f.going(obj):
            return garbage.let_go(resource, obj, dependents)
        owners = [_owner(access, mirror, obj, ref) for ref in obj["metadata"].get("ownerReferences") or ()]
        if any(owner is None for owner in owners):
            return []
        return garbage.collect(resource, obj, [owner for owner in owners if owner], bool(dependents))

    return sync


def _key(resource: str, obj: Object) -> Key:
    return f"{resource}|{f.namespace(obj)}", f.name(obj)


def _owner(access: Access, mirror: Mirror, obj: Object, ref: Object) -> garbage.Owner | None:
    """The owner a reference names; None when its kind is not known here, so that nothing can be said of it.

    What the mirror does not know is looked up: an owner that is only not seen yet must not cost its
    dependents.
    """
    blocks = bool(ref.get("blockOwnerDeletion"))
    known = mirror.by_uid(ref["uid"])
    if known:
        return garbage.Owner(ref["uid"], known[1], blocks)
    resource = _resource(mirror, ref)
    if resource is None:
        return None
    found = None
    for namespace in (f.namespace(obj) or None, None):
        found = found or _get(access, resource, namespace, ref["name"])
    return garbage.Owner(ref["uid"], found if found and f.uid(found) == ref["uid"] else None, blocks)


def _get(access: Access, resource: str, namespace: str | None, name: str) -> Object | None:
    try:
        return access.get(resource, namespace, name)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def _resource(mirror: Mirror, ref: Object) -> str | None:
    group = ref["apiVersion"].rpartition("/")[0]
    if (group, ref["kind"]) in BUILT_IN:
        return BUILT_IN[group, ref["kind"]]
    for definition in mirror.every(_CUSTOM):
        spec = f.spec(definition)
        if (spec["group"], spec["names"]["kind"]) == (group, ref["kind"]):
            return f"{spec['group']}/{spec['names']['plural']}"
    return None
