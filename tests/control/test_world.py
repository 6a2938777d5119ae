"""The index of gangs: the same whatever order objects came in, and what is assumed or held by others counted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.control.world import World, occupant
from muster.dialects.cluster import Key, Ref
from muster.dialects.table import OWNER_BY_KIND
from muster.objects.decode import from_object
from muster.objects.pods import Pod
from tests.dialects.scenes import TYPES, Scene

LABEL = "scheduling.x-k8s.io/pod-group"
TEMPLATE = "{spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}"
OURS = frozenset({"default-scheduler"})

SCENE = f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: tj}}
spec: {{runtimeRef: {{name: torch}}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: tj
  ownerReferences:
  - {{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: tj, uid: uid-trainjob-tj, controller: true}}
spec:
  replicatedJobs:
  - name: node
    replicas: 1
    template: {{spec: {{parallelism: 2, completions: 2, template: {TEMPLATE}}}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: tj-node-0
  ownerReferences:
  - {{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: tj, uid: uid-jobset-tj, controller: true}}
spec: {{parallelism: 2, completions: 2, template: {TEMPLATE}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: loose}}
spec: {{parallelism: 2, template: {TEMPLATE}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: gang}}
spec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {TEMPLATE}}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: pt}}
spec: {{pytorchReplicaSpecs: {{Worker: {{replicas: 2, template: {TEMPLATE}}}}}}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: pt
  ownerReferences:
  - {{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: pt, uid: uid-pytorchjob-pt, controller: true}}
spec: {{minMember: 2}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: alone}}
spec: {{minMember: 2}}
"""


def scene() -> Scene:
    found = Scene(SCENE)
    for index in range(2):
        found.pod(f"tj-{index}", owner=("batch/v1", "Job", "tj-node-0"))
        found.pod(f"loose-{index}", owner=("batch/v1", "Job", "loose"))
        found.pod(f"gang-{index}", owner=("batch/v1", "Job", "gang"))
        found.pod(f"pt-{index}", {LABEL: "pt"}, owner=("kubeflow.org/v1", "PyTorchJob", "pt"))
        found.pod(f"alone-{index}", {LABEL: "alone"})
    return found


def feed(world: World, tree: dict[str, Any], *, gone: bool = False) -> None:
    group = tree["apiVersion"].rpartition("/")[0]
    kind = (group, tree["kind"])
    if kind == ("", "Pod"):
        pod = from_object(as_ours(tree), Pod)
        old = world.pods.get(pod.metadata.uid)
        world.pod(old, None if gone else pod)
        return
    item = from_object(tree, TYPES[kind])
    old_item = world.objects[kind].get((tree["metadata"]["namespace"], tree["metadata"]["name"]))
    world.object(kind, old_item, None if gone else item)


def as_ours(tree: dict[str, Any]) -> dict[str, Any]:
    return {**tree, "spec": {"schedulerName": "default-scheduler", **tree["spec"]}}


Index = tuple[dict[Key, set[str]], dict[Key, set[Ref]]]


def index_of(world: World) -> Index:
    view = world.view()
    members = {key: {pod.metadata.uid for pod in view.pods[key]} for key in view.pods if view.pods[key]}
    return members, {key: set(refs) for key, refs in view.owners.items() if refs}


def expected(trees: list[dict[str, Any]]) -> Index:
    scene = Scene()
    for tree in trees:
        scene.put(tree)
    view = scene.cluster()
    members = {key: {pod.metadata.uid for pod in pods} for key, pods in view.pods.items()}
    return members, {key: set(refs) for key, refs in view.owners.items()}


TREES = list(scene().trees.values())


@settings(max_examples=60, deadline=None)
@given(st.permutations(TREES), st.data())
def test_any_order_of_arrival_and_departure_ends_in_the_same_index(
    order: list[dict[str, Any]], data: st.DataObject
) -> None:
    world = World(OURS)
    for tree in order:
        feed(world, tree)
    assert index_of(world) == expected(order)
    leaving = data.draw(st.lists(st.sampled_from(order), unique_by=id, max_size=6))
    for tree in leaving:
        feed(world, tree, gone=True)
    left = [tree for tree in order if not any(tree is other for other in leaving)]
    assert index_of(world) == expected(left)
    for tree in leaving:
        feed(world, tree)
    assert index_of(world) == expected(order)


@settings(max_examples=40, deadline=None)
@given(st.permutations(TREES))
def test_what_is_read_after_the_last_change_is_what_a_new_reader_reads(order: list[dict[str, Any]]) -> None:
    """Whatever a change touches is marked, so that reading only what is marked keeps every reading right."""
    world, readings = World(OURS), {}
    for tree in order:
        feed(world, tree)
        for key in world.take_changed():
            readings[key] = world.read(key)
    fresh = World(OURS)
    for tree in TREES:
        feed(fresh, tree)
    for key in {*fresh.members, *fresh.owners, *fresh.groups}:
        assert readings.get(key) == fresh.read(key), key


def test_a_bind_counts_until_the_watch_tells_or_it_is_taken_back() -> None:
    world = World(OURS)
    for tree in TREES:
        feed(world, tree)
    key = world.keys["uid-pod-gang-0"]
    world.take_changed()
    world.assume("uid-pod-gang-0", "n1")
    assert world.take_changed() == {key}
    assert states(world, key) == ["bound", "waiting"]
    feed(world, scene().trees["", "Pod", "default", "gang-0"])  # an event from before the bind
    assert states(world, key) == ["bound", "waiting"]
    world.assume("uid-pod-gang-0", "")
    assert states(world, key) == ["waiting", "waiting"]
    world.assume("uid-pod-gang-1", "n1")
    later = scene()
    later.bind("gang-1", "n2")
    feed(world, later.trees["", "Pod", "default", "gang-1"])
    assert world.assumed == {}
    reading = world.read(key)
    assert reading is not None
    assert [member.node for member in reading.members] == ["", "n2"]


def states(world: World, key: Key) -> list[str]:
    reading = world.read(key)
    assert reading is not None
    return [member.state for member in reading.members]


def test_a_bind_of_a_pod_that_is_gone_is_forgotten() -> None:
    world = World(OURS)
    tree = scene().trees["", "Pod", "default", "alone-0"]
    feed(world, tree)
    world.assume("uid-pod-alone-0", "n1")
    feed(world, tree, gone=True)
    assert (world.assumed, world.pods, world.keys, world.pod_lines.above) == ({}, {}, {}, {})


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ({"spec": {"schedulerName": "other", "nodeName": "n1"}}, True),
        ({"spec": {"schedulerName": "other"}}, False),
        ({"spec": {"schedulerName": "other", "nodeName": "n1"}, "status": {"phase": "Succeeded"}}, False),
        ({"spec": {"nodeName": "n1"}}, False),
        ({"spec": {"nodeName": "n1"}, "metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}, True),
    ],
)
def test_who_holds_room_without_being_planned(change: dict[str, Any], counted: bool) -> None:
    world, found = World(OURS), Scene()
    found.pod("p")
    found.patch("Pod", "p", change)
    tree = found.trees["", "Pod", "default", "p"]
    feed(world, tree)
    assert ("uid-pod-p" in world.occupants) == counted
    assert world.take_moved() == ({"uid-pod-p"} if counted else set())
    feed(world, tree, gone=True)
    assert world.occupants == {}
    assert world.take_moved() == ({"uid-pod-p"} if counted else set())


def test_an_occupant_holds_what_its_pod_asks_for() -> None:
    found = Scene()
    found.pod("p", {"app": "web"}, requests={"cpu": "1500m"})
    found.bind("p", "n7")
    running = occupant(found.pods()[0])
    assert running.seats[0].nodes == ("n7",)
    (role,) = running.gang.roles
    assert (role.request["cpu"], role.labels) == (1500, {"app": "web"})


def test_a_group_object_alone_is_something_to_report_on() -> None:
    world = World(OURS)
    group = scene().trees["scheduling.x-k8s.io", "PodGroup", "default", "alone"]
    feed(world, group)
    (key,) = world.groups
    reading = world.read(key)
    assert reading is not None
    assert (reading.gang, reading.stage) == (None, "waiting")
    feed(world, group, gone=True)
    assert world.read(key) is None


def test_every_kind_of_owner_in_the_scene_is_in_the_table() -> None:
    groups = {(tree["apiVersion"].rpartition("/")[0], tree["kind"]) for tree in TREES}
    assert groups - {("", "Pod"), ("scheduling.x-k8s.io", "PodGroup")} <= set(OWNER_BY_KIND)
