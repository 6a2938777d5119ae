"""ReplicaSets: as many pods of a template as asked for."""

from __future__ import annotations

from muster.local.api.access import Object
from muster.local.clock import seconds_of
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, CreatePods, DeletePods, Wake
from muster.local.controllers.merging import status_patch
from muster.local.controllers.templates import pod_of

RESOURCE = "apps/replicasets"
MOST_AT_ONCE = 500


def sync(replicaset: Object, pods: list[Object], now: float) -> list[Action]:
    """The next step for a ReplicaSet and its pods."""
    alive = [pod for pod in pods if f.active(pod)]
    actions: list[Action] = [*status_patch(RESOURCE, replicaset, _status(replicaset, alive, now))]
    if not f.going(replicaset):
        actions += _manage(replicaset, alive)
    return [*actions, *_wait_for_availability(replicaset, alive, now)]


def _manage(replicaset: Object, alive: list[Object]) -> list[Action]:
    missing = f.spec(replicaset).get("replicas", 1) - len(alive)
    if missing > 0:
        made = [pod_of(replicaset, f"{f.name(replicaset)}-") for _ in range(min(missing, MOST_AT_ONCE))]
        return [CreatePods(replicaset, made)]
    if missing < 0:
        return [DeletePods(replicaset, sorted(alive, key=f.removal_order)[: min(-missing, MOST_AT_ONCE)])]
    return []


def min_ready(owner: Object) -> float:
    return float(f.spec(owner).get("minReadySeconds", 0))


def _status(replicaset: Object, alive: list[Object], now: float) -> Object:
    wanted = f.labels(f.spec(replicaset)["template"]) if "metadata" in f.spec(replicaset)["template"] else {}
    return {
        **f.status(replicaset),
        "replicas": len(alive),
        "fullyLabeledReplicas": sum(wanted.items() <= f.labels(pod).items() for pod in alive) or None,
        "readyReplicas": sum(map(f.ready, alive)) or None,
        "availableReplicas": sum(f.available(pod, min_ready(replicaset), now) for pod in alive) or None,
        "observedGeneration": f.meta(replicaset).get("generation"),
    }


def _wait_for_availability(owner: Object, alive: list[Object], now: float) -> list[Action]:
    """A pod becomes available by the passing of time alone: look again when the next one does."""
    wait = min_ready(owner)
    since = [
        seconds_of((f.condition(pod, "Ready") or {}).get("lastTransitionTime")) or now
        for pod in alive
        if wait and f.ready(pod) and not f.available(pod, wait, now)
    ]
    return [Wake(min(since) + wait)] if since else []
