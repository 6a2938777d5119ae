"""What a Job's podFailurePolicy and successPolicy say about its pods and indexes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.job_indexes import parse


@dataclass(frozen=True, slots=True)
class Match:
    """The rule a failed pod fell under, in the words that end up on the Job."""

    action: str
    message: str

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


def match_failure(job: Object, pod: Object) -> Match | None:
    """The first rule of the podFailurePolicy that a failed pod matches."""
    policy = f.spec(job).get("podFailurePolicy") or {}
    if f.phase(pod) != "Failed":
        return None
    for i, rule in enumerate(policy.get("rules") or ()):
        if why := _match_exit(rule.get("onExitCodes"), pod) or _match_condition(rule.get("onPodConditions"), pod):
            return Match(rule["action"], f"{why} matching {rule['action']} rule at index {i}")
    return None


def _match_exit(wanted: Object | None, pod: Object) -> str:
    if not wanted:
        return ""
    for container in _container_statuses(pod):
        code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
        if wanted.get("containerName") not in (None, container["name"]) or not code:
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            pod_name = f"{f.namespace(pod)}/{f.name(pod)}"
            return f"Container {container['name']} for pod {pod_name} failed with exit code {code}"
    return ""


def _match_condition(wanted: Iterable[Object] | None, pod: Object) -> str:
    for pattern in wanted or ():
        found = f.condition(pod, pattern["type"])
        if found and found.get("status") == (pattern.get("status") or "True"):
            return f"Pod {f.namespace(pod)}/{f.name(pod)} has condition {pattern['type']}"
    return ""


def _container_statuses(pod: Object) -> list[Object]:
    status = f.status(pod)
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def match_success(job: Object, done: set[int]) -> str:
    """The message of the first success rule the finished indexes meet; empty when none is met."""
    policy = f.spec(job).get("successPolicy") or {}
    completions = f.spec(job).get("completions", 0)
    for i, rule in enumerate(policy.get("rules") or ()):
        wanted = parse(rule["succeededIndexes"], completions) if "succeededIndexes" in rule else None
        met = done if wanted is None else done & wanted
        enough = rule.get("succeededCount")
        if enough is None:
            enough = len(wanted or ())
        if enough and len(met) >= enough:
            return f"Matched rules at index {i}"
    return ""
