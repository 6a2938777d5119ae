"""What the server itself writes into an object before it is stored: names, identity, status."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from muster.local.api.resources import Resource

Object = dict[str, Any]

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58  # of a generated name, so that it still fits into 63 characters

# Kinds whose metadata.generation counts changes of spec.
_COUNTED = frozenset(
    {
        "pods",
        "replicationcontrollers",
        "apps/deployments",
        "apps/replicasets",
        "apps/statefulsets",
        "apps/daemonsets",
        "batch/jobs",
        "batch/cronjobs",
        "policy/poddisruptionbudgets",
        "networking.k8s.io/ingresses",
        "networking.k8s.io/networkpolicies",
        "scheduling.k8s.io/podgroups",
        "apiextensions.k8s.io/customresourcedefinitions",
    }
)
# Kinds whose status a client may give when creating: it is they who know it.
_KEEP_STATUS = frozenset({"nodes", "namespaces", "persistentvolumes", "services"})
_CRITICAL = "node.kubernetes.io/"


def now() -> str:
    return _stamp(int(time.time()))


@lru_cache(maxsize=4)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def later(seconds: int) -> str:
    return _stamp.__wrapped__(int(time.time()) + seconds)


def generated(base: str) -> str:
    return base[:_LONGEST_BASE] + "".join(secrets.choice(_ALPHABET) for _ in range(5))


def identify(resource: Resource, obj: Object, namespace: str) -> None:
    """Give a new object what only the server gives."""
    meta = obj["metadata"]
    for name in (
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ):
        meta.pop(name, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated(meta["generateName"])
    if resource.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now()
    if resource.custom or resource.id in _COUNTED:
        meta["generation"] = 1
    if "status" in resource.subresources and resource.id not in _KEEP_STATUS:
        obj.pop("status", None)


def fill_in(resource_id: str, obj: Object) -> None:
    """Fields the server generates at creation, kind by kind."""
    strategy = _STRATEGIES.get(resource_id)
    if strategy is not None:
        strategy(obj)


def counts_generation(resource: Resource) -> bool:
    return resource.custom or resource.id in _COUNTED


def _pod(obj: Object) -> None:
    spec = obj["spec"]
    obj["status"] = {"phase": "Pending", "qosClass": quality(spec)}
    if spec.get("schedulingGates"):
        obj["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": now(),
            }
        ]
    _default_tolerations(spec)
    if "serviceAccountName" not in spec:
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"


def quality(spec: Object) -> str:
    """The quality-of-service class of a pod."""
    compute = ("cpu", "memory")
    requests: set[str] = set()
    limits: set[str] = set()
    guaranteed = True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        asked, capped = resources.get("requests") or {}, resources.get("limits") or {}
        requests.update(n for n in compute if asked.get(n, "0") != "0")
        limits.update(n for n in compute if capped.get(n, "0") != "0")
        if any(n not in capped or asked.get(n, capped[n]) != capped[n] for n in compute):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _default_tolerations(spec: Object) -> None:
    tolerations = spec.get("tolerations") or []
    for key in (_CRITICAL + "not-ready", _CRITICAL + "unreachable"):
        if not any(t.get("key", key) == key and t.get("effect") in (None, "", "NoExecute") for t in tolerations):
            tolerations = [
                *tolerations,
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ]
    spec["tolerations"] = tolerations


def _job(obj: Object) -> None:
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    own = {"controller-uid": meta["uid"], "job-name": meta.get("name", "")}
    labels = dict(spec["template"]["metadata"].get("labels") or {})
    labels.update({f"batch.kubernetes.io/{k}": v for k, v in own.items()}, **own)
    spec["template"]["metadata"]["labels"] = labels
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}})


def _owner(obj: Object) -> None:
    """Controllers fill in the rest; clients read `status.replicas` of an object not yet seen by one."""
    obj["status"] = {"replicas": 0}


def _empty_status(obj: Object) -> None:
    obj["status"] = {}


def _stateful(obj: Object) -> None:
    obj["status"] = {"replicas": 0, "availableReplicas": 0}


def _daemon(obj: Object) -> None:
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    obj["status"] = dict.fromkeys(counts, 0)


def _budget(obj: Object) -> None:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    obj["status"] = dict.fromkeys(counts, 0)


_STRATEGIES: dict[str, Callable[[Object], None]] = {
    "pods": _pod,
    "batch/jobs": _job,
    "batch/cronjobs": _empty_status,
    "apps/deployments": _empty_status,
    "apps/replicasets": _owner,
    "replicationcontrollers": _owner,
    "apps/statefulsets": _stateful,
    "apps/daemonsets": _daemon,
    "policy/poddisruptionbudgets": _budget,
    "resourcequotas": _empty_status,
}
