"""Gangs by labels and annotations of other schedulers: Koordinator, Volcano, KAI, Kueue, YuniKorn, Armada."""

import json

import pytest

from muster.dialects import acts
from muster.dialects.verbs import Words
from tests.dialects.scenes import START, Scene, sizes

K = "gang.scheduling.koordinator.sh/"


def koordinator(world: Scene, name: str, gang: str = "train", **more: str) -> None:
    texts = {K + key.replace("_", "-"): text for key, text in more.items()}
    world.pod(name, annotations={K + "name": gang, **texts})


def test_koordinators_first_legal_pod_speaks_for_the_gang() -> None:
    world = Scene()
    koordinator(world, "a", min_available="xxx")
    koordinator(world, "b", min_available="2", waiting_time="3600s", mode="NonStrict")
    koordinator(world, "c", min_available="3", mode="Strict")
    reading = world.gang()
    assert sizes(reading) == {"member": (2, 3, 0)}
    assert (reading.terms.timeout, reading.terms.strict) == (3600, False)
    assert [str(each) for each in reading.problems] == [
        f"{K}min-available: pod a has 'xxx': write a whole number such as 4"
    ]


def test_koordinators_defaults_stand_in_for_what_cannot_be_read() -> None:
    world = Scene()
    koordinator(
        world,
        "a",
        min_available="1",
        total_number="0",
        mode="Lax",
        match_policy="maybe",
        waiting_time="-3",
        groups="[",
    )
    terms = world.gang().terms
    assert (terms.strict, terms.match, terms.timeout, terms.group) == (True, "once-satisfied", None, "")
    assert len(world.gang().problems) == 5
    assert world.gang().gang is not None


def test_gangs_that_name_each_other_are_one_group() -> None:
    world = Scene()
    names = json.dumps(["default/ps", "default/worker"])
    koordinator(world, "ps-0", "ps", min_available="1", groups=names)
    koordinator(world, "w-0", "worker", min_available="1", groups=names)
    gangs = [each.gang for each in world.gangs().values()]
    assert {(each.group, each.group_size) for each in gangs if each is not None} == {("default/ps,default/worker", 2)}
    koordinator(world, "other", "other", min_available="1", groups=names)
    refused = world.gangs()["koordinator:default/other"].refused
    assert refused is not None
    assert "lacks default/other" in refused.message


def test_the_older_labels_and_aliases_mean_the_same() -> None:
    world = Scene()
    old = "pod-group.scheduling.sigs.k8s.io/"
    world.pod(
        "a",
        {old + "name": "train", old + "min-available": "1", old + "match-policy": "only-waiting"},
        annotations={old + "groups": '["default/train", "default/x"]'},
    )
    terms = world.gang().terms
    assert (terms.match, terms.group_size, terms.minimum) == ("only-waiting", 2, 1)


def test_only_waiting_counts_those_that_wait_and_waiting_and_running_both() -> None:
    world = Scene()
    for name in ("a", "b", "c"):
        koordinator(world, name, min_available="3", match_policy="only-waiting")
    world.bind("a", phase="Running")
    reading = world.gang()
    assert reading.hold is not None
    assert reading.hold.reason == "WaitingForMembers"
    koordinator(world, "d", min_available="3", match_policy="only-waiting")
    assert (world.gang().hold, sizes(world.gang())) == (None, {"member": (4, 4, 0)})
    for name in ("a", "b", "c", "d"):
        world.patch("Pod", name, {"metadata": {"annotations": {K + "match-policy": "waiting-and-running"}}})
    assert sizes(world.gang()) == {"member": (3, 4, 0)}
    world.phase("a", "Succeeded")
    assert sizes(world.gang()) == {"member": (3, 3, 0)}


VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: pg
  ownerReferences:
  - {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: uid-job-train, controller: true}
spec: {minMember: 3, minTaskMember: {ps: 1, worker: 2}, queue: research}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 3
  tasks:
  - {name: ps, replicas: 1, template: TEMPLATE}
  - {name: worker, replicas: 3, template: TEMPLATE}
""".replace(
    "TEMPLATE",
    "{spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}",
)


def test_a_volcano_job_gets_its_group_inqueue_before_any_pod_exists() -> None:
    world = Scene(VOLCANO)
    reading = world.gang()
    (verb,) = acts.report(reading, world.cluster(), Words(), START)
    assert (verb.body["status"]["phase"], verb.subresource) == ("Inqueue", "status")
    assert verb.body["status"]["conditions"][0]["reason"] == "NotEnoughTasks"
    for task, index in (("worker", 2), ("ps", 0), ("worker", 0), ("worker", 1)):
        labels = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
        annotations = {"scheduling.k8s.io/group-name": "pg"}
        owner = ("batch.volcano.sh/v1alpha1", "Job", "train")
        world.pod(f"train-{task}-{index}", labels, annotations=annotations, owner=owner)
    reading = world.gang()
    assert sizes(reading) == {"ps": (1, 1, 0), "worker": (2, 3, 0)}
    assert reading.gang is not None
    assert reading.gang.queue == "research"
    for name, phase in (
        ("train-ps-0", "Unknown"),
        ("train-worker-0", "Unknown"),
        ("train-worker-1", "Running"),
    ):
        world.bind(name, phase="Running")
        (verb,) = acts.report(world.gang(), world.cluster(), Words("NoRoom", "full"), START)
        assert verb.body["status"]["phase"] == phase
    mark, command = acts.stop(world.gang(), world.cluster(), "why")
    assert mark.body["metadata"]["annotations"] == {"muster.sh/stopped": "why"}
    assert (command.body["action"], command.body["target"]["name"]) == ("AbortJob", "train")


def test_volcano_pods_without_a_group_object_say_their_minimum() -> None:
    world = Scene()
    for name in ("a", "b"):
        annotations = {"scheduling.volcano.sh/group-name": "g", "scheduling.volcano.sh/group-min-member": "2"}
        world.pod(name, annotations=annotations)
    assert sizes(world.gang()) == {"member": (2, 2, 0)}


def test_kai_groups_have_subgroups_levels_and_one_condition() -> None:
    world = Scene(
        """
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg}
spec:
  minMember: 3
  queue: team
  topologyConstraint: {requiredTopologyLevel: rack}
  subGroups: [{name: decode, minMember: 1}, {name: prefill, minMember: 2}]
"""
    )
    for role, number in (("prefill", 3), ("decode", 1)):
        for index in range(number):
            world.pod(f"{role}-{index}", {"kai.scheduler/subgroup-name": role}, annotations={"pod-group-name": "pg"})
    reading = world.gang()
    assert sizes(reading) == {"decode": (1, 1, 0), "prefill": (2, 3, 0)}
    assert reading.gang is not None
    assert (reading.gang.closeness.required, reading.gang.queue) == ("rack", "team")
    verbs = acts.report(reading, world.cluster(), Words("NoRoom", "rack-1 lacks 2"), START)
    assert verbs[0].body["status"]["schedulingConditions"][0]["message"] == "rack-1 lacks 2"
    world.send(verbs)
    assert acts.report(world.gang(), world.cluster(), Words("NoRoom", "rack-1 lacks 2"), START) == ()


def test_kueue_pod_groups_start_whole_and_keep_their_time_limit() -> None:
    world = Scene()
    labels = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/max-exec-time-seconds": "90"}
    total = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    world.pod("a", {**labels, "kueue.x-k8s.io/queue-name": "q"}, annotations=total)
    assert world.gang().gang is None
    world.pod("b", labels, annotations=total, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    hold = world.gang().hold
    assert hold is not None
    assert hold.reason == "Gated"
    world.patch("Pod", "b", {"spec": {"schedulingGates": []}})
    gang = world.gang().gang
    assert gang is not None
    assert (gang.walltime, gang.queue, gang.members) == (90, "q", 2)
    world.patch("Pod", "b", {"metadata": {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"}}})
    refused = world.gang().refused
    assert refused is not None
    assert "pod a has 2, pod b has 3" in refused.message


def test_yunikorn_holds_seats_for_task_groups_that_come_later() -> None:
    groups = [
        {"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1", "memory": "1Gi"}},
        {
            "name": "spark-executor",
            "minMember": 2,
            "minResource": {"cpu": "2"},
            "nodeSelector": {"pool": "gpu"},
        },
    ]
    world = Scene()
    y = "yunikorn.apache.org/"
    parameters = "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard"
    world.pod(
        "driver",
        {y + "app-id": "spark-1"},
        annotations={
            y + "task-groups": json.dumps(groups),
            y + "task-group-name": "spark-driver",
            y + "schedulingPolicyParameters": parameters,
        },
    )
    reading = world.gang()
    assert sizes(reading) == {"spark-driver": (1, 1, 0), "spark-executor": (2, 2, 2)}
    assert (reading.terms.timeout, reading.terms.strict) == (30, True)
    assert reading.gang is not None
    assert reading.gang.roles[1].request == {"cpu": 2000, "pods": 1}
    assert reading.gang.roles[1].rules.node_selector == (("pool", "gpu"),)
    world.bind("driver", phase="Running")
    assert world.gang().stage == "running"
    for index in range(3):
        world.pod(f"exec-{index}", {y + "app-id": "spark-1"}, annotations={y + "task-group-name": "spark-executor"})
    assert (world.gang().stage, sizes(world.gang())["spark-executor"]) == ("partial", (2, 3, 0))


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"name": "a"}]', '[{"name": "a", "minMember": 0}]'])
def test_task_groups_that_cannot_be_read_are_refused_with_an_example(text: str) -> None:
    world = Scene()
    y = "yunikorn.apache.org/"
    world.pod("a", {y + "app-id": "x"}, annotations={y + "task-groups": text})
    refused = world.gang().refused
    assert refused is not None
    assert refused.field == y + "task-groups"


def test_armada_gangs_have_an_exact_size_and_one_value_of_a_label() -> None:
    world = Scene()
    a = "armadaproject.io/"
    for name in ("x", "y"):
        assert not world.gangs() or world.gang().gang is None
        annotations = {a + "gangId": "g", a + "gangCardinality": "2", a + "gangNodeUniformityLabel": "rack"}
        world.pod(name, annotations=annotations)
    gang = world.gang().gang
    assert gang is not None
    assert (gang.members, gang.closeness.required) == (2, "rack")
    world.patch("Pod", "x", {"metadata": {"annotations": {a + "gangCardinality": "two"}}})
    assert world.gang().refused is not None
