"""The conditions of a pod that its node answers for."""

from __future__ import annotations

from collections.abc import Mapping

from muster.local.api.access import Object
from muster.local.clock import stamp


def with_conditions(pod: Object, wanted: Mapping[str, tuple[bool, str]], now: float) -> list[Object]:
    """The pod's conditions with these (truth, reason) brought up to date, and everybody else's left alone."""
    present = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
    for kind, (truth, why) in wanted.items():
        old = present.get(kind, {})
        fresh: Object = {"type": kind, "status": str(truth), "lastProbeTime": None}
        same = old.get("status") == fresh["status"]
        fresh["lastTransitionTime"] = old["lastTransitionTime"] if same else stamp(now)
        present[kind] = {**fresh, "reason": why} if why else fresh
    return list(present.values())


def readiness(pod: Object, ready: bool, reason: str, now: float) -> list[Object]:
    """The conditions of a pod past its init containers."""
    wanted = {"PodReadyToStartContainers": (ready, ""), "Initialized": (True, "")}
    return with_conditions(pod, {**wanted, "Ready": (ready, reason), "ContainersReady": (ready, reason)}, now)
