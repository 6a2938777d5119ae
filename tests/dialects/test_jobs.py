"""Jobs: which of them are gangs, how finished and lost indices count, how they are stopped and resized."""

import pytest

from muster.dialects import acts
from muster.dialects.job import indexes
from tests.dialects.scenes import Scene, sizes

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  activeDeadlineSeconds: 7200
  template: {spec: {containers: [{name: c, resources: {limits: {cpu: "2"}}}]}}
"""
OWNER = ("batch/v1", "Job", "train")


def indexed(world: Scene, *numbers: int, again: str = "") -> None:
    for number in numbers:
        text = str(number)
        key = "batch.kubernetes.io/job-completion-index"
        world.pod(f"train-{number}-x{again}", {key: text, "job-name": "train"}, owner=OWNER, requests={"cpu": "2"})


@pytest.mark.parametrize(
    ("patch", "gang"),
    [
        ({}, True),
        ({"spec": {"completions": 8}}, False),
        ({"spec": {"completionMode": "NonIndexed"}}, False),
        ({"spec": {"parallelism": 1, "completions": 1}}, False),
        ({"metadata": {"annotations": {"muster.sh/gang": "false"}}}, False),
        (
            {
                "spec": {"completionMode": "NonIndexed"},
                "metadata": {"annotations": {"muster.sh/gang": "true"}},
            },
            True,
        ),
        ({"spec": {"completionMode": "NonIndexed", "scheduling": {"gang": {"minCount": 2}}}}, True),
        ({"spec": {"scheduling": {"schedulingPolicy": {"basic": {}}}}}, False),
        ({"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}, True),
    ],
)
def test_which_jobs_are_gangs(patch: dict[str, object], gang: bool) -> None:
    world = Scene(JOB)
    world.patch("Job", "train", patch)
    indexed(world, 0, 1)
    assert ("job:default/train" in world.gangs()) is gang
    assert ("pod:default/train-0-x" in world.gangs()) is not gang


def test_an_indexed_job_starts_when_all_indices_exist() -> None:
    world = Scene(JOB)
    assert world.gang().reason == "0 of 4 members of train exist"
    indexed(world, 2, 0)
    assert world.gang().gang is None
    indexed(world, 3, 1)
    reading = world.gang()
    assert sizes(reading) == {"member": (4, 4, 0)}
    assert [each.name for each in reading.waiting(0)] == [f"train-{n}-x" for n in range(4)]
    assert reading.gang is not None
    assert (reading.gang.walltime, reading.gang.roles[0].request) == (7200, {"cpu": 2000, "pods": 1})


def test_an_index_that_fails_after_others_completed_finishes_alone() -> None:
    world = Scene(JOB)
    indexed(world, 0, 1, 2, 3)
    for number in range(4):
        world.bind(f"train-{number}-x", phase="Running")
    for number in range(3):
        world.phase(f"train-{number}-x", "Succeeded")
    world.phase("train-3-x", "Failed")
    indexed(world, 3, again="y")
    reading = world.gang()
    assert (reading.stage, reading.hold, sizes(reading)) == ("waiting", None, {"member": (1, 1, 0)})
    world.bind("train-3-xy", phase="Running")
    assert world.gang().stage == "running"
    world.phase("train-3-xy", "Succeeded")
    assert world.gang().stage == "done"


def test_completed_indices_count_by_the_status_when_their_pods_are_gone() -> None:
    world = Scene(JOB)
    indexed(world, 3)
    world.patch("Job", "train", {"status": {"succeeded": 3}})
    reading = world.gang()
    assert (reading.hold, sizes(reading)) == (None, {"member": (1, 1, 0)})


def test_an_index_given_up_for_good_is_not_waited_for() -> None:
    world = Scene(JOB)
    indexed(world, 0, 1, 2)
    world.patch("Job", "train", {"status": {"failedIndexes": "3"}})
    assert sizes(world.gang()) == {"member": (3, 3, 0)}
    assert list(indexes("1,3-5,x,9-")) == [1, 3, 4, 5, 9]


def test_a_work_queue_gang_needs_fewer_at_its_end() -> None:
    world = Scene(JOB)
    world.patch("Job", "train", {"spec": {"completionMode": "NonIndexed", "completions": 10}})
    world.patch("Job", "train", {"metadata": {"annotations": {"muster.sh/gang": "true"}}})
    indexed(world, 0, 1, 2, 3)
    assert sizes(world.gang()) == {"member": (4, 4, 0)}
    world.patch("Job", "train", {"status": {"succeeded": 8}})
    world.phase("train-0-x", "Succeeded")
    world.phase("train-1-x", "Succeeded")
    assert sizes(world.gang()) == {"member": (2, 2, 0)}


def test_a_suspended_job_is_left_alone_unless_muster_suspended_it() -> None:
    world = Scene(JOB)
    world.patch("Job", "train", {"spec": {"suspend": True}})
    reading = world.gang()
    assert (reading.stage, reading.gang) == ("stopped", None)
    assert reading.hold is not None
    assert reading.hold.reason == "Suspended"


def test_stop_and_resume_turn_a_running_job_round_and_plan_it_from_its_spec() -> None:
    world = Scene(JOB)
    indexed(world, 0, 1, 2, 3)
    for number in range(4):
        world.bind(f"train-{number}-x", phase="Running")
    verbs = acts.stop(world.gang(), world.cluster(), "preempted by big")
    (verb,) = verbs
    assert verb.body == {
        "metadata": {"annotations": {"muster.sh/stopped": "preempted by big"}},
        "spec": {"suspend": True},
    }
    assert (verb.resource.plural, verb.name, verb.uid) == ("jobs", "train", "uid-job-train")
    world.send(verbs)
    assert world.gang().stage == "running"  # its pods have not gone yet
    for number in range(4):
        world.delete("Pod", f"train-{number}-x")
    reading = world.gang()
    assert (reading.stage, reading.hold, sizes(reading)) == ("stopped", None, {"member": (4, 4, 0)})
    world.send(acts.resume(reading, world.cluster()))
    assert "muster.sh/stopped" not in world.trees["batch", "Job", "default", "train"]["metadata"]["annotations"]
    assert world.gang().stage == "waiting"


def test_an_elastic_job_is_resized_by_both_numbers() -> None:
    world = Scene(JOB)
    world.patch("Job", "train", {"metadata": {"annotations": {"muster.sh/min": "2", "muster.sh/max": "8"}}})
    indexed(world, 0, 1, 2, 3)
    reading = world.gang()
    assert sizes(reading) == {"member": (2, 8, 0)}
    (verb,) = acts.resize(reading, world.cluster(), 6)
    assert verb.body == {"spec": {"parallelism": 6, "completions": 6}}


def test_a_job_that_cannot_grow_says_so() -> None:
    world = Scene(JOB)
    annotations = {"muster.sh/gang": "true", "muster.sh/max": "8"}
    world.patch("Job", "train", {"spec": {"completionMode": "NonIndexed"}, "metadata": {"annotations": annotations}})
    indexed(world, 0, 1, 2, 3)
    reading = world.gang()
    assert sizes(reading) == {"member": (4, 4, 0)}
    assert [each.field for each in reading.problems] == ["muster.sh/max"]


def test_eviction_is_bearable_where_disruptions_are_ignored() -> None:
    world = Scene(JOB)
    indexed(world, 0)
    assert not acts.tolerates_eviction(world.gang(), world.cluster())
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    world.patch("Job", "train", {"spec": {"podFailurePolicy": {"rules": [rule]}}})
    assert acts.tolerates_eviction(world.gang(), world.cluster())


def test_pods_seen_before_their_owner_wait_for_it() -> None:
    world = Scene()
    indexed(world, 0)
    hold = world.gang().hold
    assert hold is not None
    assert hold.reason == "WaitingForOwner"


def test_a_job_of_a_cron_job_is_a_job() -> None:
    world = Scene(JOB)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": True}
    world.patch("Job", "train", {"metadata": {"ownerReferences": [owner]}})
    indexed(world, 0, 1, 2, 3)
    assert list(world.gangs()) == ["job:default/train"]


def test_each_batch_of_a_work_queue_under_a_podgroup_is_a_quorum_and_the_last_may_be_smaller() -> None:
    world = Scene(JOB)
    world.apply(
        "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 4}}"
    )
    labels = {"pod-group.scheduling.sigs.k8s.io": "g"}
    spec = {"completionMode": "NonIndexed", "completions": 10, "template": {"metadata": {"labels": labels}}}
    world.patch("Job", "train", {"spec": spec})
    for number in range(8):
        world.pod(f"w-{number}", labels, owner=OWNER)
        if number < 4:
            world.phase(f"w-{number}", "Succeeded")
    world.patch("Job", "train", {"status": {"succeeded": 4}})
    assert sizes(world.gang()) == {"member": (4, 4, 0)}
    for number in range(4, 8):
        world.phase(f"w-{number}", "Succeeded")
    world.patch("Job", "train", {"status": {"succeeded": 8}})
    for number in (8, 9):
        world.pod(f"w-{number}", labels, owner=OWNER)
    assert sizes(world.gang()) == {"member": (2, 2, 0)}


def test_a_job_without_completions_makes_no_pod_after_the_first_success() -> None:
    world = Scene(JOB)
    spec = {"completionMode": "NonIndexed", "completions": None}
    world.patch("Job", "train", {"spec": spec, "metadata": {"annotations": {"muster.sh/gang": "true"}}})
    indexed(world, 0, 1, 2, 3)
    for number in range(4):
        world.bind(f"train-{number}-x", phase="Running")
    world.phase("train-0-x", "Succeeded")
    world.patch("Job", "train", {"status": {"succeeded": 1}})
    assert world.gang().stage == "running"
    (verb,) = acts.resize(world.gang(), world.cluster(), 6)
    assert verb.body == {"spec": {"parallelism": 6}}
