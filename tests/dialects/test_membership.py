"""Who is in which gang: precedence of names, owners above owners, and gangs without pods."""

import pytest

from muster.dialects import acts
from muster.dialects.cluster import Key, Ref, lineage
from muster.dialects.membership import grouping, key_of, keys_of, top_owner
from muster.dialects.ranks import rank_of, role_of
from muster.dialects.roles import parts_of, quorum, state_of
from muster.objects.decode import from_object
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Pod
from tests.dialects.scenes import Scene

CHAIN = """
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  ownerReferences:
  - {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s, uid: uid-jobset-s, controller: true}
spec: {parallelism: 2, completions: 2, completionMode: Indexed}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s}
spec: {replicatedJobs: [{name: r, template: {spec: {parallelism: 2}}}]}
"""


def test_the_highest_owner_makes_the_gang_and_lower_ones_none() -> None:
    world = Scene(CHAIN)
    world.pod("p", owner=("batch/v1", "Job", "j"))
    cluster = world.cluster()
    assert key_of(world.pods()[0], cluster) == Key("jobset", "default", "s")
    assert keys_of(Ref("batch", "Job", "default", "j"), cluster) == ()
    assert keys_of(Ref("jobset.x-k8s.io", "JobSet", "default", "s"), cluster) == (Key("jobset", "default", "s"),)
    assert keys_of(Ref("apps", "Deployment", "default", "d"), cluster) == ()


def test_an_owner_of_another_uid_is_another_owner() -> None:
    world = Scene(CHAIN)
    world.pod("p", owner=("batch/v1", "Job", "j"))
    world.patch("Job", "j", {"metadata": {"uid": "made-anew"}})
    found = top_owner(world.pods()[0], world.cluster())
    assert found is not None
    assert (found[1].name, found[2]) == ("j", None)


def test_a_label_wins_over_an_owner_and_the_native_group_over_labels() -> None:
    world = Scene(CHAIN)
    labels = {"pod-group.scheduling.sigs.k8s.io": "a", "kueue.x-k8s.io/pod-group-name": "b"}
    world.pod("p", labels, owner=("batch/v1", "Job", "j"))
    assert key_of(world.pods()[0], world.cluster()).dialect == "podgroup.scheduling.sigs.k8s.io"
    world.patch("Pod", "p", {"spec": {"schedulingGroup": {"podGroupName": "n"}}})
    assert key_of(world.pods()[0], world.cluster()).dialect == "podgroup.scheduling.k8s.io"


def test_an_owner_whose_template_names_a_group_makes_that_group() -> None:
    world = Scene(CHAIN)
    template = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}}
    jobs = [
        {"name": "a", "template": {"spec": {"template": template}}},
        {"name": "b", "template": {"spec": {}}},
    ]
    world.patch("JobSet", "s", {"spec": {"replicatedJobs": jobs}})
    keys = keys_of(Ref("jobset.x-k8s.io", "JobSet", "default", "s"), world.cluster())
    assert [str(key) for key in keys] == ["podgroup.scheduling.x-k8s.io:default/g", "jobset:default/s"]


def test_a_chain_of_owners_ends() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "controller": True}
    world = Scene()
    meta = {"name": "x", "ownerReferences": [reference]}
    world.put({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": {}})
    own = from_object({"namespace": "default", "ownerReferences": [reference]}, ObjectMeta)
    assert len(lineage(own, world.cluster())) == 8


@pytest.mark.parametrize(
    ("labels", "annotations", "role"),
    [
        ({}, {}, "member"),
        ({"training.kubeflow.org/replica-type": "Worker"}, {}, "worker"),
        ({"training.kubeflow.org/job-role": "launcher"}, {}, "launcher"),
        ({"leaderworkerset.sigs.k8s.io/worker-index": "0"}, {}, "leader"),
        ({"leaderworkerset.sigs.k8s.io/worker-index": "3"}, {}, "worker"),
        ({"ray.io/group": "headgroup"}, {}, "headgroup"),
        ({}, {"volcano.sh/task-spec": "ps"}, "ps"),
    ],
)
def test_roles_by_the_labels_of_controllers(labels: dict[str, str], annotations: dict[str, str], role: str) -> None:
    pod = from_object({"metadata": {"labels": labels, "annotations": annotations}}, Pod)
    assert role_of(pod) == role


def test_ranks_follow_indexes_then_names_with_numbers_as_numbers() -> None:
    index = "gang.scheduling.koordinator.sh/network-topology-index"
    pods = [
        from_object({"metadata": {"name": name, "annotations": {index: rank} if rank else {}}}, Pod)
        for name, rank in (("b-10", ""), ("b-9", ""), ("z", "1"), ("y", "0"), ("x", "9" * 40), ("c", "no"))
    ]
    assert [pod.metadata.name for pod in sorted(pods, key=rank_of)] == ["y", "z", "b-9", "b-10", "c", "x"]


def pod(name: str, cpus: int, **status: object) -> Pod:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpus}}}]
    meta = {"name": name, "uid": name, "labels": {"app": "x", "name": name}}
    return from_object({"metadata": meta, "spec": {"containers": containers, **status}}, Pod)


def test_pods_alike_are_one_part_with_the_labels_all_of_them_have() -> None:
    (big, small) = parts_of([pod("a", 2), pod("b", 1), pod("c", 1)], (), Scene().cluster())
    assert ([each.metadata.name for each in small.pods], dict(small.labels)) == (["b", "c"], {"app": "x"})
    assert (big.name, small.name) == ("member", "member-2")


def test_the_quorum_takes_those_on_nodes_first_and_leaves_gated_ones_for_last() -> None:
    parts = parts_of(
        [pod("a", 1, schedulingGates=[{"name": "g"}]), pod("b", 2), pod("c", 3, nodeName="n")],
        (),
        Scene().cluster(),
    )
    assert [[state_of(each) for each in part.pods] for part in parts] == [["gated"], ["waiting"], ["bound"]]
    assert [quorum(parts, number, {}) for number in range(5)] == [
        [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]
    ]  # fmt: skip
    assert quorum(parts, 2, {"member": 1}) == [1, 0, 1]


def test_a_group_made_for_an_owner_is_the_gang_the_owner_makes() -> None:
    world = Scene(
        """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {parallelism: 2, completions: 2, completionMode: Indexed, template: {spec: {}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: train-abc-train-pgt-0-def
  ownerReferences:
  - {apiVersion: batch/v1, kind: Job, name: train, uid: uid-job-train, controller: true}
  - {apiVersion: scheduling.k8s.io/v1beta1, kind: Workload, name: train-abc, uid: w}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
"""
    )
    ref = Ref("batch", "Job", "default", "train")
    key = "podgroup.scheduling.k8s.io:default/train-abc-train-pgt-0-def"
    assert [str(each) for each in keys_of(ref, world.cluster())] == [key]
    for number in range(2):
        group = {"podGroupName": "train-abc-train-pgt-0-def"}
        world.pod(f"train-{number}", owner=("batch/v1", "Job", "train"), schedulingGroup=group)
    reading = world.gang()
    assert (str(reading.key), reading.gang is not None) == (key, True)
    world.send(acts.stop(reading, world.cluster(), "why"))
    for number in range(2):
        world.delete("Pod", f"train-{number}")
    reading = world.gang()
    assert (reading.stage, str(reading.key)) == ("stopped", key)
    assert reading.gang is not None
    assert reading.gang.members == 2


def test_a_group_made_by_nobody_or_by_an_unknown_owner_groups_no_owner() -> None:
    world = Scene(CHAIN)
    assert grouping(Ref("batch", "Job", "default", "j"), world.cluster()) is None
    assert grouping(Ref("scheduling.k8s.io", "PodGroup", "default", "none"), world.cluster()) is None
