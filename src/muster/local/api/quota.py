"""ResourceQuota: what an object uses of its namespace's quotas, and the refusal of what exceeds them.

Admission charges `status.used` in the same turn as it admits, so that no burst of creates can overrun a
quota; the quota controller recomputes it from what exists (with `total`), which gives back what is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.local.api.errors import forbidden
from muster.local.api.quantities import written
from muster.local.store import Store
from muster.objects.quantity import milli_units

Object = dict[str, Any]
Usage = dict[str, int]  # thousandths, by the name used in spec.hard

_QUOTAS = "resourcequotas"
_COUNTED_BY_NAME = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def usage(resource_id: str, obj: Object) -> Usage:
    """What one object counts for, under every name a quota may limit it by."""
    group, _, plural = resource_id.rpartition("/")
    used: Usage = {f"count/{plural}.{group}" if group else f"count/{plural}": 1000}
    if resource_id == "pods":
        return used if _ended(obj) else {**used, **_pod_usage(obj["spec"])}
    if resource_id in _COUNTED_BY_NAME:
        used[plural] = 1000
    if resource_id == "services":
        used.update(_service_usage(obj["spec"]))
    if resource_id == "persistentvolumeclaims":
        used.update(_claim_usage(obj["spec"]))
    return used


def counts(quota: Object, resource_id: str, obj: Object) -> bool:
    """Whether an object is within a quota's scopes."""
    spec = quota["spec"]
    terms = [{"scopeName": s, "operator": "Exists"} for s in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not terms:
        return True
    return resource_id == "pods" and all(_in_scope(term, obj["spec"]) for term in terms)


def total(quota: Object, objects: Iterable[tuple[str, Object]]) -> dict[str, str]:
    """`status.used` of a quota, recomputed from all (resource, object) pairs of its namespace."""
    hard = quota["spec"].get("hard") or {}
    sums = dict.fromkeys(hard, 0)
    for resource_id, obj in objects:
        if counts(quota, resource_id, obj):
            for name, amount in usage(resource_id, obj).items():
                if name in sums:
                    sums[name] += amount
    return {name: written(amount, hard[name]) for name, amount in sums.items()}


def observe(store: Store, quota: Object) -> None:
    """Give a quota its first status, so that it binds from the moment it exists."""
    hard = quota["spec"].get("hard") or {}
    namespace = quota["metadata"]["namespace"]
    resources = {"pods", *_COUNTED_BY_NAME} | {_resource_of(name) for name in hard if name.startswith("count/")}
    found = ((r, record.obj) for r in sorted(resources) for _, record in store.scan(r, namespace))
    quota["status"] = {"hard": dict(hard), "used": total(quota, found)}


def _resource_of(count: str) -> str:
    plural, _, group = count.removeprefix("count/").partition(".")
    return f"{group}/{plural}" if group else plural


def admit(store: Store, resource_id: str, obj: Object, namespace: str) -> list[tuple[str, Object]]:
    """The quotas an object is charged to, as (name, quota with its new status). Raises ApiError 403."""
    if not store.count(_QUOTAS):
        return []
    charged = []
    asked = usage(resource_id, obj)
    for (_, name), record in store.scan(_QUOTAS, namespace):
        quota = record.obj
        status = quota.get("status") or {}
        hard = status.get("hard") or {}
        wanted = {n: a for n, a in asked.items() if n in hard}
        if counts(quota, resource_id, obj) and (wanted or resource_id == "pods"):
            _check(resource_id, obj, name, status, wanted)
            if wanted:
                charged.append((name, _charged(quota, wanted)))
    return charged


def _check(resource_id: str, obj: Object, quota: str, status: Object, wanted: Usage) -> None:
    hard, used = status["hard"] if status else {}, status.get("used") or {}
    group, _, plural = resource_id.rpartition("/")
    name = obj["metadata"].get("name", "")
    if resource_id == "pods" and (missing := _unspecified(hard, obj["spec"])):
        raise forbidden(plural, group, name, f"failed quota: {quota}: must specify {missing}")
    over = sorted(n for n, a in wanted.items() if a > 0 and milli_units(used.get(n, "0")) + a > milli_units(hard[n]))
    if over:
        asked = ",".join(f"{n}={written(wanted[n], hard[n])}" for n in over)
        have = ",".join(f"{n}={used.get(n, '0')}" for n in over)
        limit = ",".join(f"{n}={hard[n]}" for n in over)
        words = f"exceeded quota: {quota}, requested: {asked}, used: {have}, limited: {limit}"
        raise forbidden(plural, group, name, words)


def _charged(quota: Object, wanted: Usage) -> Object:
    used = dict(quota["status"].get("used") or {})
    for name, amount in wanted.items():
        used[name] = written(milli_units(used.get(name, "0")) + amount, quota["status"]["hard"][name])
    return {**quota, "metadata": dict(quota["metadata"]), "status": {**quota["status"], "used": used}}


def _unspecified(hard: Object, spec: Object) -> str:
    """Compute resources a quota limits and a container does not state."""
    missing: dict[str, list[str]] = {}
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for name in hard:
            kind, _, resource = name.rpartition(".") if name.startswith(("limits.", "requests.")) else ("", "", name)
            if resource not in _COMPUTE:
                continue
            stated = resources.get(kind or "requests") or {}
            if resource not in stated:
                missing.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(who))}" for name, who in sorted(missing.items()))


def _pod_usage(spec: Object) -> Usage:
    used: Usage = {"pods": 1000}
    for kind in ("requests", "limits"):
        for name, amount in _pod_total(spec, kind).items():
            used[f"{kind}.{name}"] = amount
            if kind == "requests" and (name in _COMPUTE or name.startswith("hugepages-")):
                used[name] = amount
    return used


def _pod_total(spec: Object, kind: str) -> Usage:
    sums: Usage = {}
    for container in spec["containers"]:
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            sums[name] = sums.get(name, 0) + milli_units(amount)
    for container in spec.get("initContainers") or ():
        for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
            sums[name] = max(sums.get(name, 0), milli_units(amount))
    for name, amount in (spec.get("overhead") or {}).items():
        sums[name] = sums.get(name, 0) + milli_units(amount)
    return sums


def _service_usage(spec: Object) -> Usage:
    kind, ports = spec.get("type"), len(spec.get("ports") or ())
    used: Usage = {}
    if kind in ("NodePort", "LoadBalancer"):
        used["services.nodeports"] = 1000 * ports
    if kind == "LoadBalancer":
        used["services.loadbalancers"] = 1000
    return used


def _claim_usage(spec: Object) -> Usage:
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return {"requests.storage": milli_units(storage)} if storage else {}


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _in_scope(term: Object, spec: Object) -> bool:
    name = term["scopeName"]
    if name in ("Terminating", "NotTerminating"):
        return ("activeDeadlineSeconds" in spec) is (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        return _best_effort(spec) is (name == "BestEffort")
    if name == "PriorityClass":
        have, values = spec.get("priorityClassName", ""), term.get("values") or ()
        return {"In": have in values, "NotIn": have not in values, "Exists": bool(have)}.get(
            term.get("operator", "Exists"), not have
        )
    return False


def _best_effort(spec: Object) -> bool:
    found = [c.get("resources") or {} for c in (*spec["containers"], *(spec.get("initContainers") or ()))]
    return not any(name in (r.get(kind) or {}) for r in found for kind in ("requests", "limits") for name in _COMPUTE)
