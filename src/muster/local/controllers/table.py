"""Which controllers there are, what wakes each, and what of the mirror each is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers import job
from muster.local.controllers.actions import Action
from muster.local.controllers.job_count import Failures
from muster.local.controllers.job_pods import tracked
from muster.local.controllers.mirror import Key, Mirror

CUSTOM = "apiextensions.k8s.io/customresourcedefinitions"
WATCHED = ("pods", "nodes", "namespaces", "batch/jobs", CUSTOM)


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller: the keys a change concerns, and what to do about a key."""

    name: str
    component: str
    keys: Callable[[str, Object, Mirror], Iterable[Key]]
    sync: Callable[[Key, Mirror, float], list[Action]]


def controllers() -> list[Controller]:
    return [_job(), _orphans()]


def _key(obj: Object) -> Key:
    return f.namespace(obj), f.name(obj)


def _owner_key(obj: Object, kind: str) -> list[Key]:
    ref = f.controller_of(obj)
    return [(f.namespace(obj), ref["name"])] if ref and ref["kind"] == kind else []


def _job() -> Controller:
    rows: dict[str, Failures] = {}

    def keys(resource: str, obj: Object, _: Mirror) -> list[Key]:
        if resource == job.RESOURCE:
            return [_key(obj)]
        return _owner_key(obj, "Job") if resource == "pods" else []

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

    return Controller("job", "job-controller", keys, sync)


def _orphans() -> Controller:
    """Pods tracked by a Job that is no more would never go away: nobody is left to count them."""

    def keys(resource: str, obj: Object, mirror: Mirror) -> list[Key]:
        if resource == job.RESOURCE:
            return [_key(pod) for pod in mirror.owned(f.uid(obj), "pods")]
        return [_key(obj)] if resource == "pods" and tracked(obj) and _owner(obj, mirror) is None else []

    def sync(key: Key, mirror: Mirror, _: float) -> list[Action]:
        pod = mirror.get("pods", *key)
        return job.release([pod]) if pod and _owner(pod, mirror) is None else []

    return Controller("job-orphans", "job-controller", keys, sync)


def _owner(pod: Object, mirror: Mirror) -> Object | None:
    ref = f.controller_of(pod)
    found = mirror.get(job.RESOURCE, f.namespace(pod), ref["name"]) if ref and ref["kind"] == "Job" else None
    return found if found and ref and f.uid(found) == ref["uid"] else None
