"""PodGroup status of the group scheduling.x-k8s.io, which clusters run a controller of its own for.

In the other PodGroup groups the scheduler itself reports, so nothing is written there. The phases are
those users of the scheduler-plugins controller see, with what they dislike about them: one failed pod
makes a group Failed for good.
"""

from __future__ import annotations

from collections import Counter

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action
from muster.local.controllers.merging import status_patch

RESOURCE = "scheduling.x-k8s.io/podgroups"
LABEL = "scheduling.x-k8s.io/pod-group"


def sync(group: Object, pods: list[Object]) -> list[Action]:
    """The status of a group, from its pods."""
    status = f.status(group)
    phase = status.get("phase") or "Pending"
    if phase in ("Finished", "Failed") or f.going(group):
        return []
    least = f.spec(group).get("minMember", 1)
    if phase == "Pending":
        enough = len(pods) >= least
        found = {"phase": "Scheduling", "occupiedBy": _owners(pods[0])} if enough and pods else {"phase": "Pending"}
    else:
        found = _counted(pods, least)
    return [*status_patch(RESOURCE, group, {**status, **found})]


def _owners(pod: Object) -> str | None:
    refs = f.meta(pod).get("ownerReferences") or ()
    return ",".join(sorted(f"{f.namespace(pod)}/{ref['name']}" for ref in refs)) or None


def _counted(pods: list[Object], least: int) -> Object:
    phases = Counter(map(f.phase, pods))
    running, succeeded, failed = (phases[phase] for phase in ("Running", "Succeeded", "Failed"))
    counts = {"running": running or None, "succeeded": succeeded or None, "failed": failed or None}
    return {**counts, "phase": _phase(len(pods), running, succeeded, failed, least)}


def _phase(there: int, running: int, succeeded: int, failed: int, least: int) -> str:
    if there < least:
        return "Pending"
    if succeeded >= least:
        return "Finished"
    if failed and failed + running + succeeded >= least:
        return "Failed"
    return "Running" if succeeded + running >= least else "Scheduling"
