"""Kubernetes' own PodGroup: policies, gates, minCount changes, composite groups, conditions."""

from typing import Any

from muster.dialects import acts
from muster.dialects.verbs import Words
from tests.dialects.scenes import START, Scene, sizes

GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: NAME, generation: 1}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
"""


def group(world: Scene, name: str = "g", **spec: object) -> None:
    world.apply(GROUP.replace("NAME", name))
    if spec:
        world.patch("PodGroup", name, {"spec": spec})


def member(world: Scene, name: str, of: str = "g", **more: Any) -> None:
    world.pod(name, schedulingGroup={"podGroupName": of}, **more)


def composite(world: Scene, name: str, parent: str = "", **spec: object) -> None:
    world.put(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup",
            "metadata": {"name": name},
            "spec": {"parentCompositePodGroupName": parent, **spec},
        }
    )


def hold_reason(world: Scene, key: str = "podgroup.scheduling.k8s.io:default/g") -> str:
    hold = world.gangs()[key].hold
    return hold.reason if hold is not None else ""


def test_pods_before_their_group_are_held_and_a_basic_group_needs_nobody_else() -> None:
    world = Scene()
    member(world, "a")
    assert hold_reason(world) == "WaitingForPodGroup"
    group(world, schedulingPolicy={"gang": None, "basic": {}})
    member(world, "b")
    assert (hold_reason(world), sizes(world.gang())) == ("", {"member": (1, 2, 0)})
    world.bind("a")
    assert (world.gang().stage, sizes(world.gang())) == ("running", {"member": (1, 2, 0)})


def test_one_gated_member_holds_all() -> None:
    world = Scene()
    group(world)
    for name in ("a", "b", "c"):
        member(world, name)
    member(world, "d", schedulingGates=[{"name": "g"}])
    assert hold_reason(world) == "Gated"
    world.patch("Pod", "d", {"spec": {"schedulingGates": []}})
    assert sizes(world.gang()) == {"member": (3, 4, 0)}


def test_priority_is_the_groups_and_members_must_have_it() -> None:
    world = Scene()
    world.put(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 50,
        }
    )
    group(world, priorityClassName="high", schedulingPolicy={"gang": {"minCount": 1}})
    member(world, "a", priority=50)
    gang = world.gang().gang
    assert gang is not None
    assert gang.priority == 50
    member(world, "b")
    refused = world.gang().refused
    assert refused is not None
    assert refused.field == "spec.priority"
    (verb,) = acts.report(world.gang(), world.cluster(), Words(), START)
    reasons = {each["type"]: each["reason"] for each in verb.body["status"]["conditions"]}
    assert reasons == {"PodGroupInitiallyScheduled": "SchedulerError", "muster.sh/Satisfied": "Invalid"}


def test_initially_scheduled_never_goes_back_and_our_condition_tells_what_is_true_now() -> None:
    world = Scene()
    group(world)
    for name in ("a", "b", "c"):
        member(world, name)
    (verb,) = acts.report(world.gang(), world.cluster(), Words("NoRoom", "needs 3 CPUs"), START)
    assert verb.subresource == "status"
    world.send([verb])
    for name in ("a", "b", "c"):
        world.bind(name, phase="Running")
    world.send(acts.report(world.gang(), world.cluster(), Words(), START + 1))
    world.delete("Pod", "c")
    member(world, "d")
    world.send(acts.report(world.gang(), world.cluster(), Words("NoRoom", "needs 1 CPU"), START + 2))
    conditions = world.trees["scheduling.k8s.io", "PodGroup", "default", "g"]["status"]["conditions"]
    told = {each["type"]: (each["status"], each["observedGeneration"]) for each in conditions}
    assert told == {"PodGroupInitiallyScheduled": ("True", 1), "muster.sh/Satisfied": ("False", 1)}
    assert conditions[1]["message"] == "2 running, 0 starting, 0 done of 3; needs 1 CPU"


def test_topology_disruption_and_preemption_are_read() -> None:
    world = Scene()
    group(
        world,
        schedulingConstraints={"topology": [{"key": "topology.kubernetes.io/rack"}]},
        disruptionMode={"all": {}},
        preemptionPolicy="Never",
        schedulingPolicy={"gang": {"minCount": 1}},
    )
    member(world, "a")
    reading = world.gang()
    assert reading.gang is not None
    assert reading.gang.closeness.required == "topology.kubernetes.io/rack"
    assert (reading.terms.unit_of_disruption, reading.terms.preempts) == (True, False)
    world.patch("PodGroup", "g", {"spec": {"disruptionMode": {"all": None, "single": {}}}})
    assert not world.gang().terms.unit_of_disruption


def tree(world: Scene, needed: int, *children: str) -> None:
    composite(world, "root", schedulingPolicy={"gang": {"minGroupCount": needed}})
    for name in children:
        group(world, name, parentCompositePodGroupName="root", schedulingPolicy={"gang": {"minCount": 1}})
        member(world, f"{name}-0", name)


def test_children_of_a_composite_gang_start_together() -> None:
    world = Scene()
    tree(world, 2, "left", "right")
    gangs = [each.gang for each in world.gangs().values()]
    assert [(each.group, each.group_size, each.group_min) for each in gangs if each is not None] == [
        ("podgroup.scheduling.k8s.io:default/root", 2, 0)
    ] * 2


def test_a_composite_gang_may_need_only_some_of_its_children() -> None:
    world = Scene()
    tree(world, 2, "a", "b", "c")
    gangs = [each.gang for each in world.gangs().values()]
    assert {(each.group_size, each.group_min) for each in gangs if each is not None} == {(3, 2)}


def test_a_composite_gang_waits_for_its_children_and_children_for_their_parent() -> None:
    world = Scene()
    tree(world, 2, "a")
    key = "podgroup.scheduling.k8s.io:default/a"
    assert hold_reason(world, key) == "WaitingForGroups"
    world.delete("CompositePodGroup", "root")
    assert hold_reason(world, key) == "WaitingForParent"
    assert "spec.parentCompositePodGroupName names root" in world.gangs()[key].reason


def test_a_basic_root_leaves_its_children_alone_and_hands_down_its_topology() -> None:
    world = Scene()
    composite(world, "root", schedulingConstraints={"topology": [{"key": "zone"}]})
    composite(world, "mid", "root", schedulingPolicy={"basic": {}}, disruptionMode={"all": {}})
    group(world, "leaf", parentCompositePodGroupName="mid", schedulingPolicy={"gang": {"minCount": 1}})
    member(world, "leaf-0", "leaf")
    reading = world.gang()
    assert reading.gang is not None
    assert (reading.gang.group, reading.gang.closeness.required) == ("", "zone")
    assert reading.terms.unit_of_disruption


def test_a_deep_tree_with_partial_quorums_is_read_as_needing_all() -> None:
    world = Scene()
    composite(world, "root", schedulingPolicy={"gang": {"minGroupCount": 1}})
    for branch in ("x", "y"):
        composite(world, branch, "root", schedulingPolicy={"gang": {"minGroupCount": 1}})
        group(
            world,
            f"{branch}1",
            parentCompositePodGroupName=branch,
            schedulingPolicy={"gang": {"minCount": 1}},
        )
        member(world, f"{branch}1-0", f"{branch}1")
    gangs = [each.gang for each in world.gangs().values()]
    assert {(each.group_size, each.group_min) for each in gangs if each is not None} == {(2, 0)}


def test_parents_in_a_circle_are_refused() -> None:
    world = Scene()
    composite(world, "a", "b")
    composite(world, "b", "a")
    group(world, "leaf", parentCompositePodGroupName="a")
    member(world, "leaf-0", "leaf")
    refused = world.gang().refused
    assert refused is not None
    assert refused.field == "spec.parentCompositePodGroupName"
