"""The few questions every controller asks of an object: whose is it, is it going, what do its conditions
say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.local.api.access import Object
from muster.local.clock import seconds_of, stamp

KINDS = {
    "Deployment": "apps/deployments",
    "Job": "batch/jobs",
    "ReplicaSet": "apps/replicasets",
    "StatefulSet": "apps/statefulsets",
}


def meta(obj: Object) -> Object:
    found: Object = obj["metadata"]
    return found


def name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or "")


def uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid") or "")


def labels(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def notes(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found


def spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def phase(pod: Object) -> str:
    return str(status(pod).get("phase") or "Pending")


def going(obj: Object) -> bool:
    """Whether somebody asked for the object to be deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def ended(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def active(pod: Object) -> bool:
    return not ended(pod) and not going(pod)


def created_at(obj: Object) -> float:
    return seconds_of(obj["metadata"].get("creationTimestamp")) or 0.0


def controller_of(obj: Object) -> Object | None:
    """The owner reference that says who is in charge of the object."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller"):
            return dict(ref)
    return None


def owner_reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference(obj: Object) -> Object:
    """How an event names what it is about."""
    found = {"kind": obj.get("kind"), "namespace": namespace(obj), "name": name(obj), "uid": uid(obj)}
    found |= {"apiVersion": obj.get("apiVersion"), "resourceVersion": meta(obj).get("resourceVersion")}
    return {key: value for key, value in found.items() if value}


def conditions(obj: Object) -> list[Object]:
    found: list[Object] = status(obj).get("conditions") or []
    return found


def condition(obj: Object, kind: str) -> Object | None:
    return next((found for found in conditions(obj) if found.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    found = condition(obj, kind)
    return bool(found and found.get("status") == "True")


def with_condition(
    present: Iterable[Object], kind: str, value: str, reason: str, message: str, now: float, **more: Any
) -> list[Object]:
    """Conditions with one of them set; its transition time moves only when its status does."""
    kept = list(present)
    fresh = {"type": kind, "status": value, "reason": reason, "message": message}
    for i, old in enumerate(kept):
        if old.get("type") != kind:
            continue
        if any(old.get(key) != said for key, said in fresh.items()):
            moved = stamp(now) if old.get("status") != value else old.get("lastTransitionTime")
            kept[i] = {**old, **fresh, **more, "lastTransitionTime": moved}
        return kept
    return [*kept, {**fresh, **more, "lastTransitionTime": stamp(now)}]


def ready(pod: Object) -> bool:
    return is_true(pod, "Ready")


def available(pod: Object, min_ready: float, now: float) -> bool:
    """Whether the pod has been ready for at least `min_ready` seconds."""
    found = condition(pod, "Ready")
    if not found or found.get("status") != "True":
        return False
    since = seconds_of(found.get("lastTransitionTime")) or 0.0
    return min_ready <= 0 or since + min_ready <= now


def removal_order(pod: Object) -> tuple[object, ...]:
    """Which pod of several is missed least: unplaced, pending, not ready, restarted often, youngest."""
    seen = condition(pod, "Ready") or {}
    restarts = max((s.get("restartCount", 0) for s in status(pod).get("containerStatuses") or ()), default=0)
    return (
        bool(spec(pod).get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(phase(pod), 2),
        ready(pod),
        -(seconds_of(seen.get("lastTransitionTime")) or 0.0),
        -restarts,
        -created_at(pod),
        name(pod),
    )


def finish_time(pod: Object) -> float:
    """When a pod ended, as near as its status tells."""
    seen = [
        seconds_of(((s.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for s in status(pod).get("containerStatuses") or ()
    ]
    ends = [end for end in seen if end is not None]
    if ends and len(ends) == len(seen):
        return max(ends)
    not_ready = condition(pod, "Ready")
    if ended(pod) and not_ready and not_ready.get("status") == "False":
        return seconds_of(not_ready.get("lastTransitionTime")) or created_at(pod)
    asked = seconds_of(meta(pod).get("deletionTimestamp"))
    return asked - (meta(pod).get("deletionGracePeriodSeconds") or 0) if asked else created_at(pod)
