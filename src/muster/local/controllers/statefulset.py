"""StatefulSets: pods with a number and a name that lasts, made and replaced in order, or all at once if
asked for.
"""

from __future__ import annotations

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, CreatePods, Delete, DeletePods
from muster.local.controllers.merging import status_patch
from muster.local.controllers.replicaset import min_ready
from muster.local.controllers.templates import pod_of, template_hash

RESOURCE = "apps/statefulsets"
REVISION = "controller-revision-hash"
NAME, NUMBER = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


def sync(statefulset: Object, pods: list[Object], now: float) -> list[Action]:
    """The next step for a StatefulSet and its pods."""
    numbered = {number: pod for pod in pods if (number := _number(statefulset, pod)) is not None}
    update = _revision(statefulset)
    actions: list[Action] = [*status_patch(RESOURCE, statefulset, _status(statefulset, numbered, update, now))]
    if f.going(statefulset):
        return actions
    if ended := [pod for pod in numbered.values() if f.ended(pod) and not f.going(pod)]:
        return [*actions, *(Delete("pods", pod) for pod in ended)]
    return [*actions, *_manage(statefulset, numbered, update, now)]


def _number(statefulset: Object, pod: Object) -> int | None:
    prefix, _, number = f.name(pod).rpartition("-")
    return int(number) if prefix == f.name(statefulset) and number.isdigit() else None


def _revision(statefulset: Object) -> str:
    return f"{f.name(statefulset)}-{template_hash(f.spec(statefulset)['template'])}"


def _range(statefulset: Object) -> range:
    first = (f.spec(statefulset).get("ordinals") or {}).get("start", 0)
    return range(first, first + f.spec(statefulset).get("replicas", 1))


def _manage(statefulset: Object, pods: dict[int, Object], update: str, now: float) -> list[Action]:
    ordered = f.spec(statefulset).get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    wanted = _range(statefulset)
    missing: list[int] = []
    for number in wanted:
        pod = pods.get(number)
        if pod is None:
            missing.append(number)
        if ordered and (pod is None or not _well(statefulset, pod, now)):
            break
    if missing:
        return [CreatePods(statefulset, [_pod(statefulset, number, update) for number in missing])]
    if ordered and any(not _well(statefulset, pods[number], now) for number in wanted if number in pods):
        return []
    return _shrink(statefulset, pods, ordered=ordered) or _replace(statefulset, pods, update, now)


def _well(statefulset: Object, pod: Object, now: float) -> bool:
    return f.available(pod, min_ready(statefulset), now) and not f.going(pod)


def _shrink(statefulset: Object, pods: dict[int, Object], *, ordered: bool) -> list[Action]:
    extra = sorted((n for n in pods if n not in _range(statefulset)), reverse=True)
    if not extra:
        return []
    if ordered:
        extra = [] if any(f.going(pods[n]) for n in extra) else extra[:1]
    going = [pods[n] for n in extra if not f.going(pods[n])]
    return [DeletePods(statefulset, going)] if going else []


def _replace(statefulset: Object, pods: dict[int, Object], update: str, now: float) -> list[Action]:
    """Replace pods of an older template, the highest number first, one at a time, down to the partition."""
    strategy = f.spec(statefulset).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    for number in sorted(_range(statefulset), reverse=True):
        pod = pods.get(number)
        if pod is None or number < partition:
            return []
        if f.labels(pod).get(REVISION) != update:
            return [] if f.going(pod) else [DeletePods(statefulset, [pod])]
        if not _well(statefulset, pod, now):
            return []
    return []


def _pod(statefulset: Object, number: int, update: str) -> Object:
    pod = pod_of(statefulset, "")
    metadata, name = pod["metadata"], f"{f.name(statefulset)}-{number}"
    del metadata["generateName"]
    metadata["name"] = name
    metadata["labels"] = {**(metadata.get("labels") or {}), REVISION: update, NAME: name, NUMBER: str(number)}
    pod["spec"] |= {"hostname": name}
    if service := f.spec(statefulset).get("serviceName"):
        pod["spec"]["subdomain"] = service
    return pod


def _status(statefulset: Object, pods: dict[int, Object], update: str, now: float) -> Object:
    alive = [pod for pod in pods.values() if not f.ended(pod)]
    current = f.status(statefulset).get("currentRevision") or update
    fresh = [pod for pod in alive if f.labels(pod).get(REVISION) == update and not f.going(pod)]
    ready = [pod for pod in alive if f.ready(pod) and not f.going(pod)]
    wanted = f.spec(statefulset).get("replicas", 1)
    if len(fresh) == len(alive) == wanted and len(ready) == wanted:
        current = update
    present = [pod for pod in alive if f.labels(pod).get(REVISION) == current and not f.going(pod)]
    return {
        **f.status(statefulset),
        "observedGeneration": f.meta(statefulset).get("generation"),
        "replicas": len(alive),
        "readyReplicas": len(ready) or None,
        "availableReplicas": sum(f.available(pod, min_ready(statefulset), now) for pod in ready),
        "currentReplicas": len(present) or None,
        "updatedReplicas": len(fresh) or None,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
    }
