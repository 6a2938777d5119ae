"""What a Job wants next: pods made or deleted, outcomes counted, conditions set, as kube-controller-manager
does.

`sync` is one step. It is called again whenever the Job or one of its pods changes, so each step does what
can be done from what is there now and leaves the rest to the next: first the account is written, then pods
are let go, then pods are made or deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.local.api.access import Object
from muster.local.clock import seconds_of, stamp
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, CreatePods, Delete, DeletePods, Event, Patch, Wake
from muster.local.controllers.job_count import (
    Failures,
    Tally,
    count,
    failing_policy,
    per_index,
    waits_for_end,
)
from muster.local.controllers.job_indexes import index_of, indexed, render, superfluous, wanted_indexes
from muster.local.controllers.job_pods import TRACKING, make_pod, tracked
from muster.local.controllers.job_policy import match_success
from muster.local.controllers.merging import status_patch

RESOURCE = "batch/jobs"
MOST_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a Job is about to end. The first condition says so at once, the second when all its pods are
    gone.
    """

    failed: bool
    reason: str
    message: str

    @property
    def interim(self) -> str:
        return "FailureTarget" if self.failed else "SuccessCriteriaMet"

    @property
    def final(self) -> str:
        return "Failed" if self.failed else "Complete"


def finished(job: Object) -> bool:
    return f.is_true(job, "Complete") or f.is_true(job, "Failed")


def suspended(job: Object) -> bool:
    return bool(f.spec(job).get("suspend"))


def sync(job: Object, pods: list[Object], failures: Failures, now: float) -> tuple[list[Action], Failures]:
    """The next step for a Job, and the row of failures its next pods must wait out."""
    if f.spec(job).get("managedBy", "kubernetes.io/job-controller") != "kubernetes.io/job-controller":
        return [], failures
    if finished(job) or f.going(job):
        return [*release(pods), *_expire(job, now)], failures
    given = _given_verdict(job)
    tally = count(job, pods, failures, now, finishing=given is not None and given.failed)
    verdict = given or _judge(tally)
    deletions: list[Action] = []
    additions: list[Action] = []
    if verdict:
        deletions = [DeletePods(job, tally.active)] if tally.active else []
    else:
        deletions, additions = _manage(tally)
        verdict = _complete(tally)
    return [*_account(tally, verdict), *deletions, *additions, *_deadline(tally, verdict)], tally.failures


def release(pods: list[Object]) -> list[Action]:
    """Take the tracking finalizer off."""
    return [Patch("pods", pod, {"metadata": {"finalizers": _others(pod)}}) for pod in pods if tracked(pod)]


def _others(pod: Object) -> list[str] | None:
    return [name for name in f.meta(pod)["finalizers"] if name != TRACKING] or None


def _expire(job: Object, now: float) -> list[Action]:
    ttl = f.spec(job).get("ttlSecondsAfterFinished")
    if ttl is None or f.going(job) or not finished(job):
        return []
    ends = [seconds_of(c.get("lastTransitionTime")) for c in f.conditions(job) if c["type"] in ("Complete", "Failed")]
    expires = max(end for end in ends if end is not None) + ttl
    return [Delete(RESOURCE, job, propagation="Foreground")] if expires <= now else [Wake(expires)]


def _given_verdict(job: Object) -> Verdict | None:
    for kind in ("FailureTarget", "SuccessCriteriaMet"):
        found = f.condition(job, kind)
        if found and found.get("status") == "True":
            return Verdict(kind == "FailureTarget", found.get("reason", ""), found.get("message", ""))
    return None


def _judge(tally: Tally) -> Verdict | None:
    """Whether the Job has failed, or succeeded by its successPolicy."""
    spec = f.spec(tally.job)
    if message := failing_policy(tally):
        return Verdict(True, "PodFailurePolicy", message)
    limit = spec.get("backoffLimit", 2**31 - 1 if per_index(tally.job) else 6)
    if tally.all_failed > limit or _restarts_exceed(tally, limit):
        return Verdict(True, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = _deadline_at(tally)
    if deadline is not None and deadline <= tally.now:
        return Verdict(True, "DeadlineExceeded", "Job was active longer than specified deadline")
    if per_index(tally.job) and (verdict := _judge_indexes(tally)):
        return verdict
    if message := match_success(tally.job, tally.done):
        return Verdict(False, "SuccessPolicy", message)
    return None


def _judge_indexes(tally: Tally) -> Verdict | None:
    spec = f.spec(tally.job)
    failed = len(tally.failed_indexes)
    most = spec.get("maxFailedIndexes")
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict(True, "MaxFailedIndexesExceeded", message)
    if failed and failed + len(tally.done - tally.failed_indexes) >= spec.get("completions", 0):
        return Verdict(True, "FailedIndexes", "Job has failed indexes")
    return None


def _restarts_exceed(tally: Tally, limit: int) -> bool:
    template = f.spec(f.spec(tally.job)["template"])
    if template.get("restartPolicy") != "OnFailure":
        return False
    running = [pod for pod in tally.pods if f.phase(pod) in ("Running", "Pending")]
    restarts = sum(
        status.get("restartCount", 0)
        for pod in running
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in f.status(pod).get(kind) or ()
    )
    return bool(restarts > 0 if limit == 0 else restarts >= limit)


def _deadline_at(tally: Tally) -> float | None:
    seconds = f.spec(tally.job).get("activeDeadlineSeconds")
    started = seconds_of(f.status(tally.job).get("startTime"))
    if seconds is None or suspended(tally.job):
        return None
    return float((started if started is not None else tally.now) + seconds)


def _deadline(tally: Tally, verdict: Verdict | None) -> list[Action]:
    deadline = _deadline_at(tally)
    return [Wake(deadline)] if deadline is not None and verdict is None else []


def _complete(tally: Tally) -> Verdict | None:
    completions = f.spec(tally.job).get("completions")
    needed = 1 if completions is None else completions
    if tally.active or tally.all_succeeded < needed:
        return None
    return Verdict(False, "CompletionsReached", "Reached expected number of succeeded pods")


def _manage(tally: Tally) -> tuple[list[Action], list[Action]]:
    """Pods to delete, else pods to make, so that as many run as should."""
    if suspended(tally.job):
        return _remove(tally, tally.active[:MOST_AT_ONCE]), []
    wanted = _wanted(tally)
    if extra := _extra(tally, wanted):
        return _remove(tally, extra[:MOST_AT_ONCE]), []
    missing = wanted - len(tally.active)
    if waits_for_end(tally.job):
        missing -= tally.terminating
    if missing <= 0:
        return [], []
    if not per_index(tally.job) and tally.failures.until() > tally.now:
        return [], [Wake(tally.failures.until())]
    return [], _make(tally, min(missing, MOST_AT_ONCE))


def _wanted(tally: Tally) -> int:
    spec = f.spec(tally.job)
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    if completions is None:
        return len(tally.active) if tally.all_succeeded else int(parallelism)
    left = completions - tally.all_succeeded - (len(tally.failed_indexes) if per_index(tally.job) else 0)
    return int(max(0, min(parallelism, left)))


def _extra(tally: Tally, wanted: int) -> list[Object]:
    """Active pods to delete: those of no index of their own first, then those missed least."""
    extra = superfluous(tally.job, tally.active) if indexed(tally.job) else []
    if len(tally.active) - len(extra) > wanted:
        chosen = {f.uid(pod) for pod in extra}
        left = sorted((pod for pod in tally.active if f.uid(pod) not in chosen), key=f.removal_order)
        extra = [*extra, *left[: len(left) - wanted]]
    return extra


def _remove(tally: Tally, pods: list[Object]) -> list[Action]:
    """Deleted on purpose is not failed: the pods stop being tracked first."""
    return [*release(pods), DeletePods(tally.job, pods)] if pods else []


def _make(tally: Tally, missing: int) -> list[Action]:
    job = tally.job
    if not indexed(job):
        return [CreatePods(job, [make_pod(job) for _ in range(missing)])]
    taken = tally.done | tally.failed_indexes
    taken |= {index for pod in tally.active if (index := index_of(pod)) is not None}
    if waits_for_end(job):
        going = [pod for pod in tally.pods if f.going(pod) and not f.ended(pod)]
        taken |= {index for pod in going if (index := index_of(pod)) is not None}
    indexes, wakes = _rested(tally, wanted_indexes(job, taken, missing))
    pods = [make_pod(job, index, tally.index_failures.get(index, 0) if per_index(job) else None) for index in indexes]
    return [*([CreatePods(job, pods)] if pods else []), *wakes]


def _rested(tally: Tally, indexes: list[int]) -> tuple[list[int], list[Action]]:
    """Where failures count per index, so does the back-off."""
    if not per_index(tally.job):
        return indexes, []
    last: dict[int, float] = {}
    for pod in tally.pods:
        index = index_of(pod)
        if index in tally.index_failures and f.phase(pod) == "Failed":
            last[index] = max(last.get(index, 0.0), f.finish_time(pod))
    until = {i: Failures(tally.index_failures.get(i, 0), last[i]).until() if i in last else 0.0 for i in indexes}
    later = [at for at in until.values() if at > tally.now]
    return [i for i in indexes if until[i] <= tally.now], [Wake(min(later))] if later else []


def _account(tally: Tally, verdict: Verdict | None) -> list[Action]:
    """The status, the events it is worth, and only then the release of the pods it accounts for."""
    status = _status(tally)
    status["conditions"], said = _conditions(tally, verdict)
    if verdict and not verdict.failed and any(c["type"] == "Complete" for c in status["conditions"]):
        status["completionTime"] = stamp(tally.now)
    return [*status_patch(RESOURCE, tally.job, status), *said, *release(tally.release)]


def _status(tally: Tally) -> Object:
    job = tally.job
    status = dict(f.status(job))
    if status.get("startTime") is None and not suspended(job):
        status["startTime"] = stamp(tally.now)
    status |= {
        "active": len(tally.active) or None,
        "terminating": tally.terminating,
        "ready": tally.ready,
        "failed": tally.failed or None,
        "uncountedTerminatedPods": {key: uids or None for key, uids in tally.uncounted.items()},
    }
    if indexed(job):
        status |= {"succeeded": len(tally.done) or None, "completedIndexes": render(tally.done) or None}
        if per_index(job):
            status["failedIndexes"] = render(tally.failed_indexes)
    else:
        status["succeeded"] = tally.succeeded or None
    if suspended(job) != f.is_true(job, "Suspended") and not suspended(job):
        status["startTime"] = stamp(tally.now)
    return status


def _conditions(tally: Tally, verdict: Verdict | None) -> tuple[list[Object] | None, list[Action]]:
    found = f.conditions(tally.job)
    said: list[Action] = []
    if verdict is None:
        if suspended(tally.job) != f.is_true(tally.job, "Suspended"):
            word = "Suspended" if suspended(tally.job) else "Resumed"
            value = "True" if suspended(tally.job) else "False"
            message = f"Job {word.lower()}"
            found = f.with_condition(found, "Suspended", value, f"Job{word}", message, tally.now)
            said.append(Event(tally.job, word, message))
        return found or None, said
    now, why = tally.now, (verdict.reason, verdict.message)
    found = f.with_condition(found, verdict.interim, "True", *why, now, lastProbeTime=stamp(now))
    if tally.settled:
        found = f.with_condition(found, verdict.final, "True", *why, now, lastProbeTime=stamp(now))
        if verdict.failed:
            said.append(Event(tally.job, *why, "Warning"))
        else:
            said.append(Event(tally.job, "Completed", "Job completed"))
    return found, said
