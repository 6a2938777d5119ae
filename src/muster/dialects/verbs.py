"""Verbs as data: what is to be sent to the API, complete in itself. Sending is the live scheduler's part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from muster.dialects.cluster import Ref, Resource
from muster.objects.decode import Decoded

Send = Literal["merge", "json", "create"]

PODS = Resource("", "v1", "Pod", "pods")


@dataclass(frozen=True, slots=True)
class Verb:
    """One request: a merge patch, a JSON patch (a list of operations), or the creation of a subresource."""

    resource: Resource
    namespace: str
    name: str
    send: Send
    body: Any
    subresource: str = ""
    uid: str = ""  # the object meant; another of its name is not to be touched


@dataclass(frozen=True, slots=True)
class Words:
    """Why a gang is where it is, in one word and in one sentence."""

    reason: str = ""
    message: str = ""


class Condition(Decoded, frozen=True):
    """A condition of any object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


def patch(resource: Resource, ref: Ref, body: Mapping[str, Any], subresource: str = "") -> Verb:
    """A merge patch of one object."""
    return Verb(resource, ref.namespace, ref.name, "merge", body, subresource, ref.uid)


def evict(namespace: str, name: str, uid: str) -> Verb:
    """Evict one pod, for owners that tolerate it; disruption budgets are obeyed by the API server."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    return Verb(PODS, namespace, name, "create", body, "eviction", uid)


def annotated(spec: Mapping[str, Any] | None, annotations: Mapping[str, str | None]) -> dict[str, Any]:
    """The body of a merge patch of spec fields and annotations; None removes an annotation."""
    body: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}}
    return {**body, "spec": dict(spec)} if spec is not None else body


def time_text(now: float) -> str:
    """A moment as Kubernetes writes it."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_condition(current: Sequence[Condition], wanted: Condition, now: float) -> list[Condition] | None:
    """All conditions with one brought up to date, or None where nothing changes."""
    old = next((each for each in current if each.type == wanted.type), None)
    if old is not None and _same(old, wanted):
        return None
    since = old.last_transition_time if old is not None and old.status == wanted.status else time_text(now)
    new = Condition(
        type=wanted.type,
        status=wanted.status,
        reason=wanted.reason,
        message=wanted.message,
        last_transition_time=since,
        observed_generation=wanted.observed_generation,
    )
    if old is None:
        return [*current, new]
    return [new if each is old else each for each in current]


def written(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Conditions as JSON; a merge patch replaces the whole list."""
    return [_condition(each) for each in conditions]


def _condition(each: Condition) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": each.type,
        "status": each.status,
        "reason": each.reason,
        "message": each.message,
        "lastTransitionTime": each.last_transition_time,
    }
    return {**found, "observedGeneration": each.observed_generation} if each.observed_generation else found


def _same(old: Condition, new: Condition) -> bool:
    return (old.status, old.reason, old.message, old.observed_generation) == (
        new.status,
        new.reason,
        new.message,
        new.observed_generation,
    )
