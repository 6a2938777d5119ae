"""PodGroups of both custom groups: the walk-through of Alibaba ACS, quorum rules, status and refusals."""

import pytest

from muster.dialects import acts
from muster.dialects.cluster import Key
from muster.dialects.podgroup_sigs import phase as sigs_phase
from muster.dialects.podgroup_x import phase as x_phase
from muster.dialects.read import read
from muster.dialects.reading import Counts
from muster.dialects.verbs import Words
from tests.dialects.scenes import START, Scene, sizes

SIGS = "pod-group.scheduling.sigs.k8s.io"
X = "scheduling.x-k8s.io/pod-group"
CLASSES = {"alibabacloud.com/compute-class": "gpu-hpn", "alibabacloud.com/gpu-model-series": "example"}

GROUP = """
apiVersion: scheduling.{group}/v1alpha1
kind: PodGroup
metadata: {{name: train}}
spec: {{minMember: {minimum}}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: gang-job}
spec:
  parallelism: 4
  template:
    metadata:
      labels:
        alibabacloud.com/compute-class: gpu-hpn
        alibabacloud.com/gpu-model-series: example
        pod-group.scheduling.sigs.k8s.io: train
    spec:
      containers: [{name: c, resources: {requests: {cpu: "1"}}}]
"""


def scene(minimum: int = 3, group: str = "sigs.k8s.io") -> Scene:
    return Scene(GROUP.format(group=group, minimum=minimum))


def job_pod(world: Scene, name: str) -> None:
    world.pod(name, {SIGS: "train", **CLASSES}, owner=("batch/v1", "Job", "gang-job"))


def test_a_job_of_four_under_a_quota_of_two_waits_and_then_starts_together() -> None:
    world = scene()
    world.apply(JOB)
    job_pod(world, "gang-job-hrnc6")
    job_pod(world, "gang-job-wthnq")
    reading = world.gang()
    assert (reading.stage, reading.gang) == ("waiting", None)
    assert reading.hold is not None
    assert reading.hold.reason == "WaitingForMembers"
    assert reading.reason == "2 of 3 members of train exist"
    job_pod(world, "gang-job-msr8v")
    job_pod(world, "gang-job-qnclz")
    reading = world.gang()
    assert (reading.hold, sizes(reading)) == (None, {"member": (3, 4, 0)})
    for name in ("gang-job-hrnc6", "gang-job-wthnq", "gang-job-msr8v", "gang-job-qnclz"):
        world.bind(name, phase="Running")
    reading = world.gang()
    assert (reading.stage, reading.counts.running) == ("running", 4)
    assert reading.running is not None
    assert reading.running.seats[0].counts == (4,)


def test_classes_are_matched_where_nodes_carry_them() -> None:
    world = scene(1)
    world.pod("a", {SIGS: "train", **CLASSES})
    reading = world.gang()
    assert reading.gang is not None
    ties = reading.gang.roles[0].rules.volumes
    assert [[each.labels[0].operator for each in terms] for terms in ties] == [["In", "DoesNotExist"]] * 2


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        (
            {"alibabacloud.com/compute-class": "performance"},
            "metadata.labels[alibabacloud.com/compute-class]",
        ),
        ({}, "metadata.labels[alibabacloud.com/compute-class]"),
        ({"alibabacloud.com/compute-class": "gpu-hpn"}, "metadata.labels[alibabacloud.com/gpu-model-series]"),
    ],
)
def test_members_that_contradict_each_other_are_refused(labels: dict[str, str], field: str) -> None:
    world = scene(2)
    world.pod("a", {SIGS: "train", **CLASSES})
    world.pod("b", {SIGS: "train", **labels})
    reading = world.gang()
    assert reading.gang is None
    assert reading.refused is not None
    assert reading.refused.field == field
    assert "pod b" in reading.refused.message


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"priority": 7}, "spec.priority"),
        ({"schedulerName": "other"}, "spec.schedulerName"),
        ({"preemptionPolicy": "Never"}, "spec.preemptionPolicy"),
    ],
)
def test_members_share_priority_scheduler_and_policy(more: dict[str, object], field: str) -> None:
    world = scene(2)
    world.pod("a", {SIGS: "train"})
    world.pod("b", {SIGS: "train"}, **more)
    refused = world.gang().refused
    assert refused is not None
    assert refused.field == field


def test_two_names_on_one_pod_are_not_guessed_at() -> None:
    world = scene(1)
    world.pod("a", {SIGS: "train", X: "other"})
    refused = world.gang().refused
    assert refused is not None
    assert "other" in refused.message


def test_pods_wait_for_a_group_that_comes_later_and_go_when_it_is_there() -> None:
    world = Scene()
    world.pod("a", {X: "train"})
    reading = world.gang()
    assert reading.hold is not None
    assert reading.hold.reason == "WaitingForPodGroup"
    world.apply(GROUP.format(group="x-k8s.io", minimum=1))
    assert world.gang().hold is None


def test_gated_members_do_not_count_but_do_not_hold_others() -> None:
    world = scene(2, "x-k8s.io")
    for name in ("a", "b"):
        world.pod(name, {X: "train"})
    world.pod("c", {X: "train"}, schedulingGates=[{"name": "g"}])
    assert sizes(world.gang()) == {"member": (2, 2, 0)}
    world.patch("PodGroup", "train", {"spec": {"minMember": 3}})
    hold = world.gang().hold
    assert hold is not None
    assert hold.reason == "Gated"


def test_a_raised_or_lowered_minimum_takes_effect_at_once() -> None:
    world = scene(2)
    for name in ("a", "b", "c"):
        world.pod(name, {SIGS: "train"})
    assert sizes(world.gang()) == {"member": (2, 3, 0)}
    world.patch("PodGroup", "train", {"spec": {"minMember": 4}})
    assert world.gang().gang is None
    world.patch("PodGroup", "train", {"spec": {"minMember": 3}})
    assert sizes(world.gang()) == {"member": (3, 3, 0)}


def test_different_members_are_roles_and_the_eldest_make_the_quorum() -> None:
    world = scene(3)
    world.pod("ps", {SIGS: "train"}, requests={"cpu": "4"})
    for name in ("w-0", "w-1", "w-2"):
        world.pod(name, {SIGS: "train"}, requests={"cpu": "1", "nvidia.com/gpu": "8"})
    assert sizes(world.gang()) == {"member": (1, 1, 0), "member-2": (2, 3, 0)}
    world.bind("w-2")
    assert sizes(world.gang()) == {"member": (1, 1, 0), "member-2": (2, 3, 0)}
    world.bind("w-1")
    world.bind("w-0")
    reading = world.gang()
    assert (sizes(reading)["member-2"], reading.stage) == ((3, 3, 0), "running")


def test_a_partial_gang_says_since_when() -> None:
    world = scene(2)
    world.pod("a", {SIGS: "train"})
    world.pod("b", {SIGS: "train"})
    world.bind("a")
    world.patch("Pod", "a", {"status": {"startTime": "2027-01-15T09:00:00Z"}})
    world.delete("Pod", "b")
    world.pod("c", {SIGS: "train"})
    world.patch("Pod", "c", {"metadata": {"creationTimestamp": "2027-01-15T10:00:00Z"}})
    running = world.gang().running
    assert running is not None
    assert running.partial_since is not None
    assert running.partial_since - running.started == 3600


def test_a_member_that_is_being_deleted_holds_its_node_and_counts_for_nothing() -> None:
    world = scene(2)
    world.pod("a", {SIGS: "train"})
    world.pod("b", {SIGS: "train"})
    for name in ("a", "b"):
        world.bind(name, phase="Running")
    world.patch("Pod", "b", {"metadata": {"deletionTimestamp": "2027-01-15T10:00:00Z"}})
    reading = world.gang()
    assert (reading.stage, reading.counts.running) == ("partial", 1)
    assert [each.state for each in reading.members] == ["running", "ending"]


def test_once_satisfied_lets_later_members_come_one_by_one() -> None:
    world = scene(3)
    for name in ("a", "b", "c"):
        world.pod(name, {SIGS: "train"})
    world.bind("a", phase="Running")
    assert world.gang().stage == "partial"  # the API remembers no start: a crash, to be completed
    world.patch("PodGroup", "train", {"status": {"phase": "Running"}})
    assert sizes(world.gang()) == {"member": (1, 3, 0)}
    assert world.gang().stage == "running"


def test_status_goes_through_the_object_for_one_group_and_the_subresource_for_the_other() -> None:
    for group, label, subresource in (("sigs.k8s.io", SIGS, ""), ("x-k8s.io", X, "status")):
        world = scene(2, group)
        world.pod("a", {label: "train"}, owner=("batch/v1", "Job", "loose"))
        world.apply("{apiVersion: batch/v1, kind: Job, metadata: {name: loose}, spec: {parallelism: 2}}")
        world.pod("b", {label: "train"}, owner=("batch/v1", "Job", "loose"))
        (verb,) = acts.report(world.gang(), world.cluster(), Words("NoRoom", "needs 2 CPUs"), START)
        assert (verb.subresource, verb.resource.group) == (subresource, f"scheduling.{group}")
        status = verb.body["status"]
        assert status["occupiedBy"] == "default/loose"
        assert "scheduled" not in status or group == "sigs.k8s.io"
        assert status["conditions"][0]["message"] == "needs 2 CPUs"
        world.send([verb])
        assert acts.report(world.gang(), world.cluster(), Words("NoRoom", "needs 2 CPUs"), START + 9) == ()


def test_the_word_that_a_gang_runs_keeps_the_time_of_its_turn() -> None:
    world = scene(1)
    world.pod("a", {SIGS: "train"})
    world.send(acts.report(world.gang(), world.cluster(), Words("NoRoom", "full"), START))
    world.send(acts.report(world.gang(), world.cluster(), Words("NoRoom", "still full"), START + 60))
    world.bind("a", phase="Running")
    (verb,) = acts.report(world.gang(), world.cluster(), Words(), START + 120)
    (condition,) = verb.body["status"]["conditions"]
    assert condition["status"] == "True"
    assert condition["lastTransitionTime"] == "2027-01-15T08:02:00Z"
    assert (verb.body["status"]["phase"], verb.body["status"]["scheduled"]) == ("Running", 1)


@pytest.mark.parametrize(
    ("counts", "minimum", "sigs", "other"),
    [
        (Counts(), 3, "Pending", "Pending"),
        (Counts(waiting=2), 3, "Pending", "Pending"),
        (Counts(waiting=3), 3, "PreScheduling", "Scheduling"),
        (Counts(waiting=2, bound=1), 3, "Scheduling", "Scheduling"),
        (Counts(bound=3), 3, "Scheduled", "Scheduling"),
        (Counts(running=3), 3, "Running", "Running"),
        (Counts(running=2, succeeded=1), 3, "Running", "Running"),
        (Counts(running=2, failed=1), 3, "Failed", "Failed"),
        (Counts(succeeded=3), 3, "Finished", "Finished"),
        (Counts(waiting=3), 0, "Pending", ""),
    ],
)
def test_phases_follow_from_the_counts(counts: Counts, minimum: int, sigs: str, other: str) -> None:
    assert sigs_phase(counts, minimum) == sigs
    assert minimum == 0 or x_phase(counts, minimum) == other


def test_a_group_without_pods_is_reported_pending() -> None:
    world = scene(2, "x-k8s.io")
    cluster = world.cluster()
    reading = read(Key("podgroup.scheduling.x-k8s.io", "default", "train"), cluster)
    assert (reading.gang, reading.reason) == (None, "no member of train exists yet")
    (verb,) = acts.report(reading, cluster, Words(), START)
    assert verb.body["status"]["phase"] == "Pending"
    assert verb.body["status"]["conditions"][0]["reason"] == "WaitingForMembers"


def test_an_installed_status_subresource_is_used_and_counts_are_written() -> None:
    world = scene(1)
    world.pod("a", {SIGS: "train"})
    world.bind("a", phase="Running")
    cluster = world.cluster()
    cluster.with_status = {("scheduling.sigs.k8s.io", "PodGroup")}
    (verb,) = acts.report(world.gang(), cluster, Words(), START)
    assert verb.subresource == "status"
    assert (verb.body["status"]["running"], verb.body["status"]["scheduled"]) == (1, 1)
    assert "scheduleStartTime" not in verb.body["status"]


def test_when_scheduling_began_is_written_once() -> None:
    world = scene(1)
    world.pod("a", {SIGS: "train"})
    world.bind("a")
    (verb,) = acts.report(world.gang(), world.cluster(), Words(), START)
    assert (verb.body["status"]["phase"], verb.body["status"]["scheduleStartTime"]) == (
        "Scheduled",
        "2027-01-15T08:00:00Z",
    )
    world.send([verb])
    world.phase("a", "Running")
    (verb,) = acts.report(world.gang(), world.cluster(), Words(), START + 60)
    assert "scheduleStartTime" not in verb.body["status"]


def test_a_finished_group_is_final() -> None:
    world = scene(1)
    world.patch("PodGroup", "train", {"status": {"phase": "Finished"}})
    world.pod("a", {SIGS: "train"})
    assert acts.report(world.gang(), world.cluster(), Words(), START) == ()
