"""The Job controller, one behaviour of kube-controller-manager at a time."""

from __future__ import annotations

from typing import Any

import pytest

from muster.local.api.access import Object
from muster.local.clock import stamp
from muster.local.controllers import fields as f
from muster.local.controllers import job as jobs
from muster.local.controllers.job_indexes import INDEX
from muster.local.controllers.job_pods import TRACKING
from tests.local.cluster import Memory, forbid
from tests.local.controllers.making import TEMPLATE, JobWorld


def world(**spec: Any) -> JobWorld:
    made = JobWorld(spec)
    made.run()
    return made


def indexes(pods: list[Object]) -> list[str]:
    return sorted(f.notes(pod)[INDEX] for pod in pods)


def test_a_job_makes_its_pod_counts_it_and_completes() -> None:
    w = world()
    (pod,) = w.pods
    assert f.name(pod).startswith("train-")
    assert f.meta(pod)["finalizers"] == [TRACKING]
    assert f.labels(pod)["batch.kubernetes.io/controller-uid"] == f.uid(w.job)
    assert f.labels(pod)["job-name"] == "train"
    assert f.controller_of(pod) == f.owner_reference(w.job)
    assert w.status["active"] == 1
    w.end(pod)
    w.run()
    assert w.status["succeeded"] == 1
    assert "active" not in w.status
    assert w.conditions() == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert w.status["completionTime"] == stamp(w.memory.clock.now())
    assert "finalizers" not in f.meta(w.pods[0])
    assert ("Completed", "Job completed") in w.events
    assert ("SuccessfulCreate", f"Created pod: {f.name(pod)}") in w.events


def test_no_more_pods_run_than_completions_are_left() -> None:
    w = world(parallelism=4, completions=5)
    assert len(w.active) == 4
    for pod in w.active[:2]:
        w.end(pod)
    w.run()
    assert len(w.active) == 3
    for pod in w.active:
        w.end(pod)
    w.run()
    assert w.status["succeeded"] == 5
    assert w.most_active == 4


def test_without_completions_one_success_lets_the_rest_run_out() -> None:
    w = world(parallelism=3, completions=None)
    w.end(w.active[0])
    w.run()
    assert len(w.active) == 2
    assert not jobs.finished(w.job)
    for pod in w.active:
        w.end(pod)
    w.run()
    assert w.status["succeeded"] == 3
    assert "Complete" in w.conditions()


def test_a_failure_is_replaced_after_a_growing_back_off() -> None:
    w = world()
    waited = []
    for _ in range(3):
        w.end(w.active[0], code=1)
        w.run()
        assert w.active == []
        seconds = 0
        while not w.active:
            w.sleep(1)
            w.run()
            seconds += 1
        waited.append(seconds)
    assert waited == [10, 20, 40]
    assert w.status["failed"] == 3


def test_past_the_backoff_limit_the_job_fails_and_takes_its_pods_along() -> None:
    w = world(parallelism=2, completions=2, backoffLimit=0)
    first, second = w.active
    w.place(second)
    w.end(first, code=1)
    w.run()
    assert w.conditions() == {"FailureTarget": "BackoffLimitExceeded"}
    assert f.going(w.memory.get("pods", "default", f.name(second)))
    w.confirm(second)
    w.run()
    assert w.conditions()["Failed"] == "BackoffLimitExceeded"
    assert w.status["failed"] == 2
    assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in w.events
    assert w.status["terminating"] == 0


def test_restarts_in_place_count_against_the_limit_of_an_on_failure_job() -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}
    w = world(backoffLimit=2, template=template)
    again = {"name": "main", "restartCount": 2}
    name = f.name(w.active[0])
    w.memory.patch("pods", "default", name, {"status": {"phase": "Running", "containerStatuses": [again]}})
    w.run()
    assert "FailureTarget" in w.conditions()


def test_indexed_pods_know_who_they_are() -> None:
    w = world(parallelism=3, completions=3, completionMode="Indexed")
    assert indexes(w.pods) == ["0", "1", "2"]
    pod = next(pod for pod in w.pods if f.notes(pod)[INDEX] == "2")
    assert f.labels(pod)[INDEX] == "2"
    assert f.name(pod).startswith("train-2-")
    assert f.spec(pod)["hostname"] == "train-2"
    (variable,) = f.spec(pod)["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"


def test_a_failed_index_is_made_again_and_only_that_one() -> None:
    w = world(parallelism=3, completions=3, completionMode="Indexed")
    w.end(next(pod for pod in w.pods if f.notes(pod)[INDEX] == "1"), code=1)
    w.run()
    w.sleep(10)
    w.run()
    assert indexes(w.active) == ["0", "1", "2"]
    for pod in w.active:
        w.end(pod)
    w.run()
    assert w.status["completedIndexes"] == "0-2"
    assert (w.status["succeeded"], w.status["failed"]) == (3, 1)


def test_an_elastic_job_shrinks_from_the_top_and_grows_back() -> None:
    w = world(parallelism=4, completions=4, completionMode="Indexed")
    for pod in w.active:
        w.place(pod)
    w.change(parallelism=2, completions=2)
    w.run()
    assert indexes(w.active) == ["0", "1"]
    for pod in w.pods:
        if f.going(pod):
            w.confirm(pod)
    w.run()
    assert "failed" not in w.status
    w.change(parallelism=3, completions=3)
    w.run()
    assert indexes(w.active) == ["0", "1", "2"]


def test_suspending_deletes_without_counting_and_resuming_starts_the_clock_again() -> None:
    w = world(parallelism=2, completions=2)
    started = w.status["startTime"]
    w.change(suspend=True)
    w.run()
    assert w.active == []
    assert w.conditions() == {"Suspended": "JobSuspended"}
    assert "failed" not in w.status
    w.sleep(60)
    w.change(suspend=False)
    w.run()
    assert len(w.active) == 2
    assert w.conditions() == {}
    assert w.status["startTime"] > started
    assert ("Suspended", "Job suspended") in w.events
    assert ("Resumed", "Job resumed") in w.events


def test_a_job_born_suspended_has_not_started() -> None:
    w = world(suspend=True)
    assert w.pods == []
    assert "startTime" not in w.status


def test_a_deadline_ends_it() -> None:
    w = world(activeDeadlineSeconds=30)
    w.sleep(29)
    w.run()
    assert w.conditions() == {}
    w.sleep(1)
    w.run()
    assert w.conditions()["Failed"] == "DeadlineExceeded"


def test_a_finished_job_goes_when_its_time_to_live_is_over() -> None:
    w = world(ttlSecondsAfterFinished=60)
    w.end(w.active[0])
    w.run()
    w.sleep(59)
    w.run()
    assert not f.going(w.job)
    w.sleep(1)
    w.run()
    assert f.meta(w.job)["finalizers"] == ["foregroundDeletion"]


def failure_policy(action: str, **rule: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, **rule}]}}


def test_a_policy_can_ignore_a_disruption() -> None:
    condition = {"type": "DisruptionTarget", "status": "True"}
    w = world(backoffLimit=0, **failure_policy("Ignore", onPodConditions=[condition]))
    w.end(w.active[0], code=137, conditions=[condition])
    w.run()
    assert "failed" not in w.status
    assert len(w.active) == 1


def test_a_policy_can_end_the_job_at_an_exit_code() -> None:
    w = world(**failure_policy("FailJob", onExitCodes={"operator": "In", "values": [42]}))
    pod = f.name(w.active[0])
    w.end(w.active[0], code=42)
    w.run()
    failed = f.condition(w.job, "Failed")
    assert failed
    assert failed["reason"] == "PodFailurePolicy"
    message = f"Container main for pod default/{pod} failed with exit code 42 matching FailJob rule at index 0"
    assert failed["message"] == message


def test_an_evicted_pod_is_replaced_at_once_by_default_and_after_its_end_if_asked() -> None:
    for policy, expected in ((None, 1), ("Failed", 0)):
        w = world(podReplacementPolicy=policy)
        (pod,) = w.active
        w.place(pod)
        w.memory.delete("pods", "default", f.name(pod))
        w.run()
        w.sleep(10)
        w.run()
        assert len(w.active) == expected
        assert w.status["terminating"] == 1


def test_limits_per_index_fail_the_index_and_spare_the_others() -> None:
    w = world(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1, backoffLimit=None)
    for _ in range(2):
        w.end(next(pod for pod in w.active if f.notes(pod)[INDEX] == "0"), code=1)
        w.run()
        w.sleep(700)
        w.run()
    assert w.status["failedIndexes"] == "0"
    assert indexes(w.active) == ["1"]
    w.end(w.active[0])
    w.run()
    assert w.conditions()["Failed"] == "FailedIndexes"
    assert (w.status["succeeded"], w.status["failed"]) == (1, 2)


def test_a_success_policy_ends_it_early() -> None:
    rule = {"rules": [{"succeededIndexes": "0"}]}
    w = world(parallelism=3, completions=3, completionMode="Indexed", successPolicy=rule)
    w.end(next(pod for pod in w.active if f.notes(pod)[INDEX] == "0"))
    w.run()
    assert w.conditions() == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    assert w.active == []


def test_quota_refuses_in_small_batches_and_says_so() -> None:
    memory = Memory()
    tried = []

    def full(resource: str, obj: Object) -> None:
        if resource == "pods":
            tried.append(obj)
            if len(tried) > 3:
                raise forbid('pods "train-x" is forbidden: exceeded quota: q')

    memory.admit = full
    w = JobWorld({"parallelism": 100, "completions": 100}, memory)
    w.run()
    assert len(w.active) == 3
    assert len(tried) == 7
    assert "exceeded quota" in w.refused
    assert ("FailedCreate", 'Error creating: pods "train-x" is forbidden: exceeded quota: q') in w.events
    memory.admit = lambda _resource, _obj: None
    w.run()
    assert len(w.active) == 100


def test_somebody_elses_job_is_left_alone() -> None:
    assert world(managedBy="kueue.x-k8s.io/multikueue").pods == []


@pytest.mark.parametrize("gone", [True, False])
def test_a_job_being_deleted_lets_its_pods_go(gone: bool) -> None:
    w = world()
    w.memory.delete(jobs.RESOURCE, "default", "train", propagation="Foreground")
    w.run()
    assert "finalizers" not in f.meta(w.pods[0])
    assert len(w.pods) == 1
