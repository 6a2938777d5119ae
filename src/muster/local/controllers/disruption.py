"""PodDisruptionBudgets: how many of their pods may be missing now, as eviction asks before it evicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from muster.local.api.access import Object
from muster.local.clock import seconds_of
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action
from muster.local.controllers.merging import status_patch
from muster.objects.decode import from_object
from muster.objects.selectors import LabelSelector, Selector, label_selector

RESOURCE = "policy/poddisruptionbudgets"
_FORGOTTEN = 120.0


def selector(budget: Object) -> Selector:
    written = f.spec(budget).get("selector")
    return label_selector(None if written is None else from_object(written, LabelSelector))


def sync(budget: Object, pods: Iterable[Object], scale: Callable[[Object], int | None], now: float) -> list[Action]:
    """The status of a budget; `scale` says how many pods the owner of a pod wants to have."""
    chosen = selector(budget)
    matched = [pod for pod in pods if chosen.matches(f.labels(pod)) and not f.ended(pod)]
    expected, needed, failure = _needed(budget, matched, scale)
    evicted = _still_expected(budget, matched, now)
    healthy = sum(f.ready(pod) and not f.going(pod) and f.name(pod) not in evicted for pod in matched)
    allowed = max(0, healthy - needed) if expected > 0 and not failure else 0
    status = {
        **f.status(budget),
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": evicted or None,
        "observedGeneration": f.meta(budget).get("generation"),
        "conditions": _conditions(budget, allowed, failure, now),
    }
    return [*status_patch(RESOURCE, budget, status)]


def _needed(budget: Object, pods: list[Object], scale: Callable[[Object], int | None]) -> tuple[int, int, str]:
    """How many pods there should be, how many must be healthy, and why that cannot be said."""
    spec = f.spec(budget)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(least, int) and most is None:
        return len(pods), least, ""
    expected, failure = _expected(pods, scale)
    if most is not None:
        return expected, max(0, expected - _share(most, expected)), failure
    return expected, _share(least or 0, expected), failure


def _expected(pods: list[Object], scale: Callable[[Object], int | None]) -> tuple[int, str]:
    owners: dict[str, int] = {}
    for pod in pods:
        ref, size = f.controller_of(pod), scale(pod)
        if ref is None or size is None:
            return 0, f'found no controllers for pod "{f.name(pod)}"'
        owners[ref["uid"]] = size
    return sum(owners.values()), ""


def _share(value: int | str, of: int) -> int:
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * of / 100)


def _still_expected(budget: Object, pods: list[Object], now: float) -> dict[str, str]:
    """Evictions granted but not yet seen: they count until the pod is going, or for two minutes."""
    alive = {f.name(pod) for pod in pods if not f.going(pod)}
    granted: dict[str, str] = f.status(budget).get("disruptedPods") or {}
    return {n: at for n, at in granted.items() if n in alive and (seconds_of(at) or 0.0) + _FORGOTTEN > now}


def _conditions(budget: Object, allowed: int, failure: str, now: float) -> list[Object]:
    reason, value = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
    if failure:
        reason, value = "SyncFailed", "False"
    more = {"observedGeneration": f.meta(budget).get("generation")}
    return f.with_condition(f.conditions(budget), "DisruptionAllowed", value, reason, failure, now, **more)
