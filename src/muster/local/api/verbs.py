"""The verbs beyond reading and writing: binding a pod to a node, evicting it through its budgets, scaling."""

from __future__ import annotations

from typing import Any

from muster.local.api.cluster import Cluster
from muster.local.api.errors import (
    ApiError,
    FieldError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from muster.local.api.options import DeleteOptions, Options
from muster.local.api.preparing import now
from muster.local.api.resources import Resource
from muster.local.api.selectors import selects, text_of

Object = dict[str, Any]

_ENDED = ("Succeeded", "Failed")
_BUDGETS = "policy/poddisruptionbudgets"


def bind(cluster: Cluster, namespace: str, name: str, binding: Object, options: Options) -> None:
    """Give a pod its node, once."""
    pods = cluster.catalogue.by_id["pods"]
    record = cluster.record(pods, namespace, name)
    node = _target(binding, name)
    pod = record.obj
    _check_bindable(pod, (binding.get("metadata") or {}).get("uid"))
    given = binding.get("metadata") or {}
    meta = dict(pod["metadata"])
    for kind in ("annotations", "labels"):
        if given.get(kind):
            meta[kind] = {**(meta.get(kind) or {}), **given[kind]}
    status = dict(pod.get("status") or {})
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
    status["conditions"] = [*others, scheduled]
    spec = {**pod["spec"], "nodeName": node}
    if not options.dry_run:
        bound = {**pod, "metadata": meta, "spec": spec, "status": status}
        cluster.put_unchecked(pods, (namespace, name), bound, record)


def _target(binding: Object, name: str) -> str:
    target = binding.get("target") or {}
    errors: list[FieldError] = []
    if target.get("kind", "Node") not in ("Node", ""):
        errors.append(not_supported("target.kind", target["kind"], ("Node",)))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        raise invalid("", "Binding", name, errors)
    return str(target["name"])


def _check_bindable(pod: Object, uid: str | None) -> None:
    name = pod["metadata"]["name"]
    if uid and uid != pod["metadata"]["uid"]:
        words = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
        raise conflict("pods/binding", "", name, words)
    if "deletionTimestamp" in pod["metadata"]:
        words = f"pod {name} is being deleted, cannot be assigned to a host"
        raise conflict("pods/binding", "", name, words)
    if pod["spec"].get("nodeName"):
        words = f"pod {name} is already assigned to node {_quoted(pod['spec']['nodeName'])}"
        raise conflict("pods/binding", "", name, words)
    if pod["spec"].get("schedulingGates"):
        words = f"pod {name} has non-empty .spec.schedulingGates"
        raise conflict("pods/binding", "", name, words)


def _quoted(text: str) -> str:
    return f'"{text}"'


def evict(cluster: Cluster, namespace: str, name: str, delete: DeleteOptions) -> None:
    """Delete a pod if its disruption budgets allow it now."""
    pods = cluster.catalogue.by_id["pods"]
    pod = cluster.record(pods, namespace, name).obj
    phase = (pod.get("status") or {}).get("phase")
    if phase not in (*_ENDED, "Pending") and "deletionTimestamp" not in pod["metadata"]:
        _charge_budget(cluster, pod, delete.dry_run)
    if not delete.dry_run:
        _mark_disrupted(cluster, pods, namespace, name)
    cluster.delete(pods, namespace, name, delete)


def _charge_budget(cluster: Cluster, pod: Object, dry_run: bool) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        (key, record)
        for key, record in cluster.store.scan(_BUDGETS, namespace)
        if selects(record.obj["spec"].get("selector"), labels)
    ]
    if len(budgets) > 1:
        words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", words)
    for key, record in budgets:
        status = record.obj.get("status") or {}
        if status.get("observedGeneration", 0) < record.obj["metadata"].get("generation", 0):
            raise _refused(f"The disruption budget {key[1]} is still being processed by the server.", 10)
        if status.get("disruptionsAllowed", 0) <= 0:
            words = f"The disruption budget {key[1]} needs {status.get('desiredHealthy', 0)} healthy pods and has"
            raise _refused(f"{words} {status.get('currentHealthy', 0)} currently")
        if dry_run:
            continue
        disrupted = {**(status.get("disruptedPods") or {}), name: now()}
        allowed = status["disruptionsAllowed"] - 1
        charged = {**status, "disruptionsAllowed": allowed, "disruptedPods": disrupted}
        final = {**record.obj, "metadata": dict(record.obj["metadata"]), "status": charged}
        cluster.put_unchecked(cluster.catalogue.by_id[_BUDGETS], key, final, record)


def _refused(why: str, retry: int = 0) -> ApiError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        details["retryAfterSeconds"] = retry
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", words, details)


def _mark_disrupted(cluster: Cluster, pods: Resource, namespace: str, name: str) -> None:
    """Say on the pod why it goes, so that failure policies can tell an eviction from a crash."""
    record = cluster.record(pods, namespace, name)
    pod = record.obj
    status = pod.get("status") or {}
    if not pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
        return
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": now(),
    }
    kept = [c for c in status.get("conditions") or () if c.get("type") != "DisruptionTarget"]
    changed = {**status, "conditions": [*kept, condition]}
    final = {**pod, "metadata": dict(pod["metadata"]), "status": changed}
    cluster.put_unchecked(pods, (namespace, name), final, record)


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of a workload."""
    spec, status, meta = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    paths = resource.scale or (".spec.replicas", ".status.replicas", "")
    selector = spec.get("selector")
    text = text_of(selector if "matchLabels" in (selector or {}) or not selector else {"matchLabels": selector})
    if resource.scale:
        text = str(at(obj, paths[2]) or "") if paths[2] else ""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in kept if k in meta},
        "spec": {"replicas": at(obj, paths[0]) or 0},
        "status": {"replicas": at(obj, paths[1]) or status.get("replicas", 0)},
    }
    if text:
        scale["status"]["selector"] = text
    return scale


def set_scale(
    cluster: Cluster, resource: Resource, namespace: str, name: str, scale: Object, options: Options
) -> Object:
    """Write the replicas of a workload through its Scale."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if type(replicas) is not int:
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas must be an integer')
    if replicas < 0:
        words = "must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [invalid_value("spec.replicas", replicas, words)])
    old = cluster.record(resource, namespace, name).obj
    path = (resource.scale or (".spec.replicas",))[0].strip(".").split(".")
    new = {**old, "metadata": dict(old["metadata"])}
    new["metadata"]["resourceVersion"] = (scale.get("metadata") or {}).get("resourceVersion", "")
    inner = new
    for step in path[:-1]:
        inner[step] = dict(inner.get(step) or {})
        inner = inner[step]
    inner[path[-1]] = replicas
    return scale_of(resource, cluster.replace(resource, namespace, name, new, options))


def at(obj: Object, path: str) -> Any:
    """The value at a simple path such as `.status.replicas`; None when there is none."""
    value: Any = obj
    for step in path.strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
