"""Deployments: a ReplicaSet per template, the newest scaled up as the older ones are scaled down."""

from __future__ import annotations

import math

from muster.local.api.access import Object
from muster.local.clock import seconds_of, stamp
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Create, Delete, Event, Patch, Wake
from muster.local.controllers.merging import status_patch
from muster.local.controllers.replicaset import RESOURCE as REPLICASETS
from muster.local.controllers.templates import template_hash

RESOURCE = "apps/deployments"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED, LARGEST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"


def sync(deployment: Object, replicasets: list[Object], now: float) -> list[Action]:
    """The next step for a Deployment and the ReplicaSets it owns."""
    if f.going(deployment):
        return []
    new = _current(deployment, replicasets)
    paused = f.spec(deployment).get("paused", False)
    if new is None and not paused:
        fresh = _replicaset(deployment, replicasets)
        name, size = f.name(fresh), fresh["spec"]["replicas"]
        message = f"Scaled up replica set {name} from 0 to {size}"
        told = [Event(deployment, "ScalingReplicaSet", message)] if size else []
        created = f'Created new replica set "{name}"'
        return [Create(REPLICASETS, fresh), *told, *_status(deployment, replicasets, None, now, created)]
    old = [rs for rs in replicasets if new is None or f.uid(rs) != f.uid(new)]
    actions: list[Action] = []
    if new is not None:
        actions = _revise(deployment, new, old)
        actions += _scale_only(deployment, new, old) if paused else _roll(deployment, new, old)
        actions += _clean_up(deployment, new, old)
    return [*actions, *_status(deployment, replicasets, new, now)]


def _current(deployment: Object, replicasets: list[Object]) -> Object | None:
    """The ReplicaSet whose template is the Deployment's."""
    wanted = _plain(f.spec(deployment)["template"])
    same = [rs for rs in replicasets if _plain(f.spec(rs)["template"]) == wanted]
    return min(same, key=f.created_at, default=None)


def _plain(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": metadata}


def _replicaset(deployment: Object, others: list[Object]) -> Object:
    spec = f.spec(deployment)
    mark = template_hash(spec["template"], f.status(deployment).get("collisionCount") or 0)
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: mark}
    selector = spec.get("selector") or {}
    matched = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: mark}}
    revision = str(max((_revision(rs) for rs in others), default=0) + 1)
    running = sum(f.spec(rs).get("replicas", 0) for rs in others)
    rolling = _strategy(deployment) == "RollingUpdate"
    room = _wanted(deployment) + (_surge(deployment) if rolling else 0) - running
    body = {
        "replicas": max(0, min(_wanted(deployment), room)) if running == 0 or rolling else 0,
        "selector": matched,
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    if "minReadySeconds" in spec:
        body["minReadySeconds"] = spec["minReadySeconds"]
    metadata = {
        "name": f"{f.name(deployment)}-{mark}",
        "namespace": f.namespace(deployment),
        "labels": labels,
        "annotations": {**_inherited(deployment), REVISION: revision, **_sizes(deployment)},
        "ownerReferences": [f.owner_reference(deployment)],
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": body}


def _inherited(deployment: Object) -> dict[str, str]:
    own = (REVISION, "kubectl.kubernetes.io/last-applied-configuration")
    return {key: value for key, value in f.notes(deployment).items() if key not in own}


def _sizes(deployment: Object) -> dict[str, str]:
    most = _wanted(deployment) + (_surge(deployment) if _strategy(deployment) == "RollingUpdate" else 0)
    return {DESIRED: str(_wanted(deployment)), LARGEST: str(most)}


def _revision(replicaset: Object) -> int:
    text = f.notes(replicaset).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _revise(deployment: Object, new: Object, old: list[Object]) -> list[Action]:
    """The current template has the highest revision, also after a roll-back; the Deployment says which."""
    highest = max((_revision(rs) for rs in old), default=0)
    revision = str(max(_revision(new), highest + 1)) if _revision(new) <= highest else str(_revision(new))
    actions: list[Action] = []
    if f.notes(new).get(REVISION) != revision:
        actions.append(Patch(REPLICASETS, new, {"metadata": {"annotations": {REVISION: revision}}}))
    if f.notes(deployment).get(REVISION) != revision:
        actions.append(Patch(RESOURCE, deployment, {"metadata": {"annotations": {REVISION: revision}}}))
    return actions


def _wanted(deployment: Object) -> int:
    return int(f.spec(deployment).get("replicas", 1))


def _strategy(deployment: Object) -> str:
    return str((f.spec(deployment).get("strategy") or {}).get("type") or "RollingUpdate")


def _share(deployment: Object, key: str, *, up: bool) -> int:
    rolling = (f.spec(deployment).get("strategy") or {}).get("rollingUpdate") or {}
    value = rolling.get(key, "25%")
    if isinstance(value, int):
        return value
    part = int(value.removesuffix("%")) * _wanted(deployment) / 100
    return math.ceil(part) if up else math.floor(part)


def _surge(deployment: Object) -> int:
    return _share(deployment, "maxSurge", up=True)


def _unavailable(deployment: Object) -> int:
    allowed = _share(deployment, "maxUnavailable", up=False)
    return 1 if not allowed and not _surge(deployment) else min(allowed, _wanted(deployment))


def _size(replicaset: Object) -> int:
    return int(f.spec(replicaset).get("replicas", 0))


def _ready(replicaset: Object, key: str = "availableReplicas") -> int:
    return int(f.status(replicaset).get(key, 0))


def _scale(deployment: Object, replicaset: Object, size: int) -> list[Action]:
    if _size(replicaset) == size:
        return []
    way = "up" if size > _size(replicaset) else "down"
    message = f"Scaled {way} replica set {f.name(replicaset)} from {_size(replicaset)} to {size}"
    change = {"spec": {"replicas": size}, "metadata": {"annotations": _sizes(deployment)}}
    return [Patch(REPLICASETS, replicaset, change), Event(deployment, "ScalingReplicaSet", message)]


def _scale_only(deployment: Object, new: Object, old: list[Object]) -> list[Action]:
    return _scale(deployment, new, _wanted(deployment)) if not any(map(_size, old)) else []


def _roll(deployment: Object, new: Object, old: list[Object]) -> list[Action]:
    wanted, olds = _wanted(deployment), [rs for rs in old if _size(rs)]
    if _strategy(deployment) == "Recreate":
        if olds:
            return [action for rs in olds for action in _scale(deployment, rs, 0)]
        over = all(not f.status(rs).get("replicas") for rs in old)
        return _scale(deployment, new, wanted) if over else []
    total = _size(new) + sum(map(_size, olds))
    if _size(new) > wanted:
        return _scale(deployment, new, wanted)
    if _size(new) < wanted and total < wanted + _surge(deployment):
        return _scale(deployment, new, min(wanted, _size(new) + wanted + _surge(deployment) - total))
    return _shrink(deployment, new, olds)


def _shrink(deployment: Object, new: Object, olds: list[Object]) -> list[Action]:
    """Take from the old what is not needed: first what is not available anyway, then what may be missing."""
    least = _wanted(deployment) - _unavailable(deployment)
    spare = sum(map(_size, olds)) + _ready(new) - least
    sizes = {}
    for rs in sorted(olds, key=f.created_at):
        broken = max(0, min(_size(rs) - _ready(rs), spare))
        sizes[f.name(rs)], spare = _size(rs) - broken, spare - broken
    spare = min(spare, _ready(new) + sum(map(_ready, olds)) - least)
    actions: list[Action] = []
    for rs in sorted(olds, key=f.created_at):
        down = max(0, min(sizes[f.name(rs)], spare))
        spare -= down
        actions += _scale(deployment, rs, sizes[f.name(rs)] - down)
    return actions


def _clean_up(deployment: Object, new: Object, old: list[Object]) -> list[Action]:
    limit = f.spec(deployment).get("revisionHistoryLimit", 10)
    empty = [rs for rs in old if not _size(rs) and not f.status(rs).get("replicas") and not f.going(rs)]
    extra = sorted(empty, key=_revision)[: max(0, len(empty) - limit)]
    return [Delete(REPLICASETS, rs, propagation="Background") for rs in extra] if _ready(new) else []


def _status(
    deployment: Object, replicasets: list[Object], new: Object | None, now: float, created: str = ""
) -> list[Action]:
    replicas = sum(_ready(rs, "replicas") for rs in replicasets)
    available = sum(map(_ready, replicasets))
    updated = _ready(new, "replicas") if new else 0
    status = {
        **f.status(deployment),
        "observedGeneration": f.meta(deployment).get("generation"),
        "replicas": replicas or None,
        "updatedReplicas": updated or None,
        "readyReplicas": sum(_ready(rs, "readyReplicas") for rs in replicasets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, max(replicas, _wanted(deployment)) - available) or None,
    }
    conditions, wakes = _conditions(deployment, status, new, now, created)
    return [*status_patch(RESOURCE, deployment, {**status, "conditions": conditions}), *wakes]


def _conditions(
    deployment: Object, status: Object, new: Object | None, now: float, created: str
) -> tuple[list[Object], list[Action]]:
    found = f.conditions(deployment)
    enough = (status["availableReplicas"] or 0) >= _wanted(deployment) - _unavailable(deployment)
    word = "has" if enough else "does not have"
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    message = f"Deployment {word} minimum availability."
    found = f.with_condition(found, "Available", str(enough), reason, message, now)
    if created or new is None:
        more = {"lastUpdateTime": stamp(now)}
        why = ("NewReplicaSetCreated", created)
        return (f.with_condition(found, "Progressing", "True", *why, now, **more) if created else found), []
    return _progress(deployment, status, new, now, found)


def _progress(
    deployment: Object, status: Object, new: Object, now: float, found: list[Object]
) -> tuple[list[Object], list[Action]]:
    old = f.condition(deployment, "Progressing") or {}
    wanted, name = _wanted(deployment), f.name(new)
    if all((status[key] or 0) == wanted for key in ("updatedReplicas", "replicas", "availableReplicas")):
        why = ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        return f.with_condition(found, "Progressing", "True", *why, now, lastUpdateTime=stamp(now)), []
    deadline = f.spec(deployment).get("progressDeadlineSeconds", 600)
    keys = ("updatedReplicas", "readyReplicas", "availableReplicas")
    moved = any((status[key] or 0) > f.status(deployment).get(key, 0) for key in keys)
    since = seconds_of(old.get("lastUpdateTime"))
    if moved or since is None or old.get("reason") == "NewReplicaSetAvailable":
        kept = [c for c in found if c["type"] != "Progressing"]
        why = ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
        fresh = f.with_condition(kept, "Progressing", "True", *why, now, lastUpdateTime=stamp(now))
        return fresh, [Wake(now + deadline)]
    if since + deadline <= now:
        why = ("ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.')
        return f.with_condition(found, "Progressing", "False", *why, now, lastUpdateTime=stamp(now)), []
    return found, [Wake(since + deadline)]
