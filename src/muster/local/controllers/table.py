"""Which controllers there are, what wakes each, and what of the mirror each is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.local.api.access import Access, Object
from muster.local.api.quota import total
from muster.local.controllers import (
    deployment,
    disruption,
    endpoints,
    garbage_table,
    job,
    lost_pods,
    namespaces,
    node_lifecycle,
    podgroup,
    replicaset,
    statefulset,
)
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action
from muster.local.controllers.job_count import Failures
from muster.local.controllers.job_pods import tracked
from muster.local.controllers.merging import status_patch
from muster.local.controllers.mirror import Key, Mirror

CUSTOM = "apiextensions.k8s.io/customresourcedefinitions"
LEASES, NODE_LEASES = "coordination.k8s.io/leases", "kube-node-lease"
QUOTAS = "resourcequotas"
_REST_PER_POD = 0.0002
WATCHED = (*garbage_table.BUILT_IN.values(), CUSTOM)


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller: the keys a change concerns, and what to do about a key."""

    name: str
    component: str
    keys: Callable[[str, Object, Mirror], Iterable[Key]]
    sync: Callable[[Key, Mirror, float], list[Action]]
    rest: Callable[[Key, Mirror], float] = lambda _key, _mirror: 0.0  # seconds between two looks at one key


def _by_size(resource: str) -> Callable[[Key, Mirror], float]:
    """An owner of thousands of pods is looked at once for many of their changes, or looking would take all
    the time.
    """

    def rest(key: Key, mirror: Mirror) -> float:
        found = mirror.get(resource, *key)
        return min(1.0, _REST_PER_POD * mirror.count_owned(f.uid(found), "pods")) if found else 0.0

    return rest


def controllers(access: Access) -> list[Controller]:
    garbage = Controller("garbage", "garbage-collector-controller", garbage_table.keys, garbage_table.collector(access))
    return [
        _job(),
        _orphans(),
        _replicaset(),
        _deployment(),
        _statefulset(),
        _disruption(),
        _endpoints(),
        _podgroup(),
        _node(),
        _lost_pods(),
        _quota(access),
        _namespace(access),
        garbage,
    ]


def _key(obj: Object) -> Key:
    return f.namespace(obj), f.name(obj)


def _owner_key(obj: Object, kind: str) -> list[Key]:
    ref = f.controller_of(obj)
    return [(f.namespace(obj), ref["name"])] if ref and ref["kind"] == kind else []


def _owner_keys(owner: str, kind: str, dependent: str) -> Callable[[str, Object, Mirror], list[Key]]:
    """The key of an owner, woken by itself and by what it controls."""

    def keys(resource: str, obj: Object, _: Mirror) -> list[Key]:
        if resource == owner:
            return [_key(obj)]
        return _owner_key(obj, kind) if resource == dependent else []

    return keys


def _job() -> Controller:
    rows: dict[str, Failures] = {}

    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get(job.RESOURCE, *key)
        if found is None:
            return []
        row = rows.get(f.uid(found), Failures())
        wanted, row = job.sync(found, mirror.owned(f.uid(found), "pods"), row, now)
        if job.finished(found):
            rows.pop(f.uid(found), None)
        else:
            rows[f.uid(found)] = row
        return wanted

    return Controller("job", "job-controller", _owner_keys(job.RESOURCE, "Job", "pods"), sync, _by_size(job.RESOURCE))


def _orphans() -> Controller:
    """Pods tracked by a Job that is no more would never go away: nobody is left to count them."""

    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == job.RESOURCE:
            return [_key(pod) for pod in mirror.owned(f.uid(obj), "pods")]
        return [_key(obj)] if resource == "pods" and tracked(obj) and _job_of(obj, mirror) is None else []

    def sync(key: Key, mirror: Mirror, _: float) -> list[Action]:
        pod = mirror.get("pods", *key)
        return job.release([pod]) if pod and _job_of(pod, mirror) is None else []

    return Controller("job-orphans", "job-controller", keys, sync)


def _job_of(pod: Object, mirror: Mirror) -> Object | None:
    ref = f.controller_of(pod)
    found = mirror.get(job.RESOURCE, f.namespace(pod), ref["name"]) if ref and ref["kind"] == "Job" else None
    return found if found and ref and f.uid(found) == ref["uid"] else None


def _replicaset() -> Controller:
    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get(replicaset.RESOURCE, *key)
        return replicaset.sync(found, mirror.owned(f.uid(found), "pods"), now) if found else []

    keys = _owner_keys(replicaset.RESOURCE, "ReplicaSet", "pods")
    return Controller("replicaset", "replicaset-controller", keys, sync, _by_size(replicaset.RESOURCE))


def _deployment() -> Controller:
    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get(deployment.RESOURCE, *key)
        return deployment.sync(found, mirror.owned(f.uid(found), replicaset.RESOURCE), now) if found else []

    keys = _owner_keys(deployment.RESOURCE, "Deployment", replicaset.RESOURCE)
    return Controller("deployment", "deployment-controller", keys, sync)


def _statefulset() -> Controller:
    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get(statefulset.RESOURCE, *key)
        return statefulset.sync(found, mirror.owned(f.uid(found), "pods"), now) if found else []

    keys = _owner_keys(statefulset.RESOURCE, "StatefulSet", "pods")
    return Controller("statefulset", "statefulset-controller", keys, sync)


def _in_namespace_of(resource: str, other: str, mirror: Mirror, changed: str, obj: Object) -> list[Key]:
    """Every object of a resource in the namespace of a pod that changed, and one that changed itself."""
    if changed == resource:
        return [_key(obj)]
    return [_key(found) for found in mirror.every(resource, f.namespace(obj))] if changed == other else []


def _disruption() -> Controller:
    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        return _in_namespace_of(disruption.RESOURCE, "pods", mirror, resource, obj)

    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get(disruption.RESOURCE, *key)
        if found is None:
            return []
        return disruption.sync(found, mirror.every("pods", key[0]), lambda pod: _scale(pod, mirror), now)

    return Controller("disruption", "controllermanager", keys, sync)


def _scale(pod: Object, mirror: Mirror) -> int | None:
    """How many pods the controller of a pod wants to have."""
    ref = f.controller_of(pod)
    owner = mirror.get(f.KINDS.get(ref["kind"], ""), f.namespace(pod), ref["name"]) if ref else None
    if owner is None:
        return None
    size = f.spec(owner).get("parallelism" if owner["kind"] == "Job" else "replicas", 1)
    return int(size)


def _endpoints() -> Controller:
    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == endpoints.RESOURCE:
            return [_key(obj)]
        found = _in_namespace_of("services", "pods", mirror, resource, obj)
        return found if resource == "services" else [key for key in found if _selected(mirror, key, obj)]

    def sync(key: Key, mirror: Mirror, _: float) -> list[Action]:
        found = mirror.get("services", *key)
        present = mirror.get(endpoints.RESOURCE, *key)
        return endpoints.sync(found, mirror.every("pods", key[0]), present) if found else []

    return Controller("endpoints", "endpoint-controller", keys, sync)


def _selected(mirror: Mirror, key: Key, pod: Object) -> bool:
    service = mirror.get("services", *key)
    wanted = f.spec(service).get("selector") if service else None
    return bool(wanted and wanted.items() <= f.labels(pod).items())


def _podgroup() -> Controller:
    def keys(resource: str, obj: Object, _: Mirror) -> list[Key]:
        if resource == podgroup.RESOURCE:
            return [_key(obj)]
        name = f.labels(obj).get(podgroup.LABEL) if resource == "pods" else None
        return [(f.namespace(obj), name)] if name else []

    def sync(key: Key, mirror: Mirror, _: float) -> list[Action]:
        found = mirror.get(podgroup.RESOURCE, *key)
        if found is None:
            return []
        pods = [pod for pod in mirror.every("pods", key[0]) if f.labels(pod).get(podgroup.LABEL) == key[1]]
        return podgroup.sync(found, pods)

    return Controller("podgroup", "podgroup-controller", keys, sync)


def _node() -> Controller:
    def keys(resource: str, obj: Object, _: Mirror) -> list[Key]:
        if resource == "nodes" or (resource == LEASES and f.namespace(obj) == NODE_LEASES):
            return [("", f.name(obj))]
        return [("", f.spec(obj)["nodeName"])] if resource == "pods" and f.spec(obj).get("nodeName") else []

    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        node = mirror.get("nodes", *key)
        if node is None:
            return []
        return node_lifecycle.sync(node, mirror.get(LEASES, NODE_LEASES, key[1]), mirror.on_node(key[1]), now)

    return Controller("node", "node-controller", keys, sync)


def _lost_pods() -> Controller:
    missing: dict[str, float] = {}

    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == "nodes":
            return (
                [_key(pod) for pod in mirror.on_node(f.name(obj))] if not mirror.get("nodes", "", f.name(obj)) else []
            )
        if resource != "pods":
            return []
        node = f.spec(obj).get("nodeName")
        return [_key(obj)] if (f.going(obj) if not node else not mirror.get("nodes", "", node)) else []

    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        pod = mirror.get("pods", *key)
        node = f.spec(pod).get("nodeName", "") if pod else ""
        there = mirror.get("nodes", "", node) is not None
        if there:
            missing.pop(node, None)
        return (
            lost_pods.sync(pod, there, missing.setdefault(node, now) if node and not there else now, now) if pod else []
        )

    return Controller("lost-pods", "pod-garbage-collector", keys, sync)


def _quota(access: Access) -> Controller:
    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == QUOTAS:
            return [_key(obj)]
        given_back = mirror.get(resource, *_key(obj)) is None or (resource == "pods" and f.ended(obj))
        return [_key(quota) for quota in mirror.every(QUOTAS, f.namespace(obj))] if given_back else []

    def sync(key: Key, mirror: Mirror, _: float) -> list[Action]:
        quota = mirror.get(QUOTAS, *key)
        if quota is None:
            return []
        quota = access.get(QUOTAS, *key)
        inside = _contents(access, mirror.resources(), key[0])
        pairs = ((kind, obj) for kind, objects in inside.items() for obj in objects)
        status = {"hard": f.spec(quota).get("hard") or {}, "used": total(quota, pairs)}
        return [*status_patch(QUOTAS, quota, {**f.status(quota), **status})]

    return Controller("quota", "resourcequota-controller", keys, sync)


def _contents(access: Access, kinds: Iterable[str], namespace: str) -> dict[str, list[Object]]:
    """All there is in a namespace, from the API itself: here the mirror must not be a moment behind."""
    inside = (kind for kind in kinds if kind not in ("nodes", "namespaces", CUSTOM))
    return {kind: [obj for obj in access.list(kind, namespace) if f.namespace(obj)] for kind in inside}


def _namespace(access: Access) -> Controller:
    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == "namespaces":
            return [("", f.name(obj))]
        home = mirror.get("namespaces", "", f.namespace(obj))
        return [("", f.name(home))] if home and f.going(home) else []

    def sync(key: Key, mirror: Mirror, now: float) -> list[Action]:
        found = mirror.get("namespaces", *key)
        if found is None or not f.going(found):
            return []
        contents = _contents(access, [*mirror.resources(), "events"], key[1])
        return namespaces.sync(found, contents, now)

    return Controller("namespace", "namespace-controller", keys, sync)
