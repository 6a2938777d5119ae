"""Nodes that fall silent: notice it by their leases, taint them, and evict the pods that do not tolerate
that.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.local.api.access import Object
from muster.local.clock import seconds_of, stamp
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Delete, Event, Patch, Wake
from muster.local.controllers.merging import status_patch
from muster.objects.decode import from_object
from muster.objects.taints import NOT_READY, OUT_OF_SERVICE, UNREACHABLE, UNSCHEDULABLE, Taint, Toleration

_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE})
_FOREVER = float("inf")


def sync(node: Object, lease: Object | None, pods: Iterable[Object], now: float) -> list[Action]:
    """The next step for a node, the lease it renews and the pods on it. A node that never had a lease is
    left alone.
    """
    pods = list(pods)
    actions: list[Action] = []
    expires = _expires(lease)
    if expires is not None and expires <= now:
        actions = _lost(node, now)
    elif expires is not None and not f.going(node):
        actions = [Wake(expires)]
    ready = "Unknown" if actions and not isinstance(actions[0], Wake) else _readiness(node)
    taints = _taints(node, ready, now)
    if taints != (f.spec(node).get("taints") or []):
        actions.append(Patch("nodes", node, {"spec": {"taints": taints or None}}))
    if ready not in ("True", ""):
        actions += [action for pod in pods for action in _not_ready(pod, now)]
    return [*actions, *(action for pod in pods for action in _evict(pod, taints, now))]


def _expires(lease: Object | None) -> float | None:
    spec = f.spec(lease) if lease else {}
    renewed = seconds_of(spec.get("renewTime"))
    return None if renewed is None else renewed + spec.get("leaseDurationSeconds", 40)


def _readiness(node: Object) -> str:
    found = f.condition(node, "Ready")
    return str(found.get("status")) if found else ""


def _lost(node: Object, now: float) -> list[Action]:
    if _readiness(node) == "Unknown":
        return []
    found = f.conditions(node)
    for kind in [c["type"] for c in found]:
        message = "Kubelet stopped posting node status."
        found = f.with_condition(found, kind, "Unknown", "NodeStatusUnknown", message, now)
    status = {**f.status(node), "conditions": found}
    said = Event(node, "NodeNotReady", f"Node {f.name(node)} status is now: NodeNotReady")
    return [*status_patch("nodes", node, status), said]


def _taints(node: Object, ready: str, now: float) -> list[Object]:
    """The node's taints with ours as its state asks for."""
    present = f.spec(node).get("taints") or []
    wanted = []
    if ready in ("False", "Unknown"):
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        wanted = [(key, "NoSchedule"), (key, "NoExecute")]
    if f.spec(node).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    kept = [t for t in present if t["key"] not in _OURS or (t["key"], t["effect"]) in wanted]
    have = {(taint["key"], taint["effect"]) for taint in kept}
    new = [
        {"key": key, "effect": effect, "timeAdded": stamp(now)} for key, effect in wanted if (key, effect) not in have
    ]
    return [*kept, *new]


def _not_ready(pod: Object, now: float) -> list[Action]:
    """Services stop sending to the pods of a node nobody hears of."""
    if not f.ready(pod):
        return []
    found = f.conditions(pod)
    for kind in ("Ready", "ContainersReady"):
        old = f.condition(pod, kind) or {}
        found = f.with_condition(found, kind, "False", old.get("reason", ""), old.get("message", ""), now)
    said = Event(pod, "NodeNotReady", "Node is not ready", "Warning")
    return [*status_patch("pods", pod, {**f.status(pod), "conditions": found}), said]


def _evict(pod: Object, taints: list[Object], now: float) -> list[Action]:
    if f.ended(pod):
        return []
    if f.going(pod):
        dead = any(taint["key"] == OUT_OF_SERVICE for taint in taints)
        return [Delete("pods", pod, grace=0)] if dead and not _tolerates_out_of_service(pod, taints) else []
    until = min((_until(pod, taint) for taint in taints if taint["effect"] == "NoExecute"), default=_FOREVER)
    if until == _FOREVER:
        return []
    return [Wake(until)] if until > now else _disrupt(pod, now)


def _tolerations(pod: Object) -> list[Toleration]:
    return [from_object(written, Toleration) for written in f.spec(pod).get("tolerations") or ()]


def _tolerates_out_of_service(pod: Object, taints: list[Object]) -> bool:
    dead = [from_object(taint, Taint) for taint in taints if taint["key"] == OUT_OF_SERVICE]
    return all(any(t.tolerates(taint) for t in _tolerations(pod)) for taint in dead)


def _until(pod: Object, written: Object) -> float:
    """How long a pod may stay on a node with this taint."""
    taint = from_object(written, Taint)
    seconds = [t.toleration_seconds for t in _tolerations(pod) if t.tolerates(taint)]
    if not seconds:
        return 0.0
    limits = [max(0, limit) for limit in seconds if limit is not None]
    added = seconds_of(written.get("timeAdded")) or 0.0
    return added + min(limits) if limits else _FOREVER


def _disrupt(pod: Object, now: float) -> list[Action]:
    message = "Taint manager: deleting due to NoExecute taint"
    why = ("DisruptionTarget", "True", "DeletionByTaintManager", message, now)
    status = {**f.status(pod), "conditions": f.with_condition(f.conditions(pod), *why)}
    said = Event(pod, "TaintManagerEviction", f"Marking for deletion Pod {f.namespace(pod)}/{f.name(pod)}")
    return [*status_patch("pods", pod, status), said, Delete("pods", pod)]
