"""Count a Job's pods so that each outcome counts exactly once, whatever is deleted, retried or crashed in
between.

The account is kept in the API, in two steps, as Kubernetes does: the UID of a pod that ended is written to
`status.uncountedTerminatedPods` before its tracking finalizer is taken off, and moves into the counters
once the finalizer is gone. Successes of an Indexed Job need no UIDs: their index in `completedIndexes` is
their account.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.job_indexes import INDEX_FAILURES, index_of, indexed, parse, valid_index
from muster.local.controllers.job_pods import tracked
from muster.local.controllers.job_policy import Match, match_failure

MOST_UNCOUNTED = 500
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 600.0


@dataclass(frozen=True, slots=True)
class Failures:
    """How many pods failed in a row, and when the last did: what the back-off of new pods depends on."""

    count: int = 0
    last: float = 0.0

    def until(self) -> float:
        """When the next pod may be made."""
        if not self.count:
            return 0.0
        return self.last + float(min(FIRST_BACKOFF * 2 ** min(self.count - 1, 10), LONGEST_BACKOFF))

    def after(self, failed: Iterable[float], succeeded: Iterable[float]) -> Failures:
        """The row, continued by pods that ended at these times."""
        failed, succeeded = sorted(failed), sorted(succeeded)
        count = self.count
        if succeeded:
            failed = [end for end in failed if end > succeeded[-1]]
            count = 0
        return Failures(count + len(failed), failed[-1] if failed else self.last if count else 0.0)


@dataclass(slots=True)
class Tally:
    """A Job's pods, counted."""

    job: Object
    pods: list[Object]
    now: float
    active: list[Object] = field(default_factory=list)
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    done: set[int] = field(default_factory=set)
    uncounted: dict[str, list[str]] = field(default_factory=lambda: {"succeeded": [], "failed": []})
    release: list[Object] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    failures: Failures = Failures()
    index_failures: dict[int, int] = field(default_factory=dict)
    failed_indexes: set[int] = field(default_factory=set)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted["failed"])

    @property
    def all_succeeded(self) -> int:
        return len(self.done) if indexed(self.job) else self.succeeded + len(self.uncounted["succeeded"])

    @property
    def ready(self) -> int:
        return sum(f.ready(pod) for pod in self.active)

    @property
    def settled(self) -> bool:
        """Whether nothing moves any more: no pod is active, ending or not yet counted."""
        return not (self.active or self.terminating or any(self.uncounted.values())) and not any(
            tracked(pod) for pod in self.pods
        )


def waits_for_end(job: Object) -> bool:
    """Whether a pod that is being deleted still holds its place until it has really failed."""
    spec = f.spec(job)
    return spec.get("podReplacementPolicy") == "Failed" or bool(spec.get("podFailurePolicy"))


def per_index(job: Object) -> bool:
    return f.spec(job).get("backoffLimitPerIndex") is not None


def has_failed(job: Object, pod: Object) -> bool:
    """Whether a pod counts as a failure; one that was deleted may never live to say so itself."""
    if f.phase(pod) == "Failed":
        return True
    return not waits_for_end(job) and f.going(pod) and f.phase(pod) != "Succeeded"


def count(job: Object, pods: list[Object], failures: Failures, now: float, *, finishing: bool = False) -> Tally:
    """The account of a Job after looking at its pods; `finishing` counts what still runs as failed."""
    tally = Tally(job, pods, now, failures=failures)
    tally.active = [pod for pod in pods if f.active(pod)]
    tally.terminating = sum(f.going(pod) and not f.ended(pod) for pod in pods)
    _carry_over(tally)
    if per_index(job):
        _count_index_failures(tally)
    _count_ended(tally, finishing)
    return tally


def _carry_over(tally: Tally) -> None:
    status, spec = f.status(tally.job), f.spec(tally.job)
    tally.succeeded, tally.failed = status.get("succeeded", 0), status.get("failed", 0)
    if indexed(tally.job):
        tally.done = parse(status.get("completedIndexes", ""), spec.get("completions", 0))
        tally.failed_indexes = parse(status.get("failedIndexes", ""), spec.get("completions", 0))
    held = {f.uid(pod) for pod in tally.pods if tracked(pod)}
    for outcome, uids in (status.get("uncountedTerminatedPods") or {}).items():
        tally.uncounted[outcome] = [uid for uid in uids if uid in held]
        counted = len(uids) - len(tally.uncounted[outcome])
        if outcome == "failed":
            tally.failed += counted
        else:
            tally.succeeded += counted


def _count_ended(tally: Tally, finishing: bool) -> None:
    known = {uid for uids in tally.uncounted.values() for uid in uids}
    kept = _kept_per_index(tally) if per_index(tally.job) and not finishing else set()
    failed_at, succeeded_at = [], []
    for pod in tally.pods:
        if not tracked(pod) or f.uid(pod) in kept:
            continue
        failed = has_failed(tally.job, pod) or (finishing and f.phase(pod) != "Succeeded" and f.going(pod))
        if not failed and f.phase(pod) != "Succeeded":
            continue
        if sum(map(len, tally.uncounted.values())) >= MOST_UNCOUNTED:
            break
        tally.release.append(pod)
        if f.uid(pod) in known or not valid_index(tally.job, pod):
            continue
        if f.phase(pod) == "Succeeded":
            _count_success(tally, pod)
            succeeded_at.append(f.finish_time(pod))
        elif _count_failure(tally, pod):
            failed_at.append(f.finish_time(pod))
    tally.failures = tally.failures.after(failed_at, succeeded_at)


def _count_success(tally: Tally, pod: Object) -> None:
    index = index_of(pod)
    if indexed(tally.job) and index is not None:
        tally.done.add(index)
    else:
        tally.uncounted["succeeded"].append(f.uid(pod))


def _count_failure(tally: Tally, pod: Object) -> bool:
    match = match_failure(tally.job, pod)
    if match:
        tally.matches.append(match)
        if not match.counts:
            return False
    tally.uncounted["failed"].append(f.uid(pod))
    return True


def _count_index_failures(tally: Tally) -> None:
    limit = f.spec(tally.job)["backoffLimitPerIndex"]
    for pod in tally.pods:
        index = index_of(pod)
        if index is None or index in tally.done or not tracked(pod) or not has_failed(tally.job, pod):
            continue
        match = match_failure(tally.job, pod)
        before = int(f.notes(pod).get(INDEX_FAILURES, "0"))
        failures = before + (match is None or match.counts)
        tally.index_failures[index] = max(tally.index_failures.get(index, 0), failures)
        if failures > limit or (match and match.action == "FailIndex"):
            tally.failed_indexes.add(index)


def _kept_per_index(tally: Tally) -> set[str]:
    """Failed pods whose count of failures only they know: kept until another pod of their index carries it
    on.
    """
    replaced = {index_of(pod) for pod in tally.active} | tally.failed_indexes | tally.done
    last: dict[int, Object] = {}
    for pod in tally.pods:
        index = index_of(pod)
        if index is None or index in replaced or not tracked(pod) or not has_failed(tally.job, pod):
            continue
        if index not in last or f.finish_time(pod) >= f.finish_time(last[index]):
            last[index] = pod
    return {f.uid(pod) for pod in last.values()}


def failing_policy(tally: Tally) -> str:
    """The message of the FailJob rule some pod matched, if one did."""
    matches = (match_failure(tally.job, pod) for pod in tally.pods if tracked(pod))
    return next((match.message for match in matches if match and match.action == "FailJob"), "")
