"""Pods nobody looks after: on a node that no longer exists, or deleted before they had one."""

from __future__ import annotations

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Delete, Wake
from muster.local.controllers.merging import status_patch

QUARANTINE = 40.0


def sync(pod: Object, node_exists: bool, missing_since: float, now: float) -> list[Action]:
    """What to do about a pod; a node is given a while to come back under its name."""
    if not f.spec(pod).get("nodeName"):
        return [*_fail(pod, now), Delete("pods", pod, grace=0)] if f.going(pod) and not f.ended(pod) else []
    if node_exists:
        return []
    if missing_since + QUARANTINE > now:
        return [Wake(missing_since + QUARANTINE)]
    return [*_fail(pod, now, "PodGC: node no longer exists"), Delete("pods", pod, grace=0)]


def _fail(pod: Object, now: float, why: str = "") -> list[Action]:
    if f.ended(pod):
        return []
    conditions = f.conditions(pod)
    if why:
        conditions = f.with_condition(conditions, "DisruptionTarget", "True", "DeletionByPodGC", why, now)
    return [*status_patch("pods", pod, {**f.status(pod), "phase": "Failed", "conditions": conditions or None})]
