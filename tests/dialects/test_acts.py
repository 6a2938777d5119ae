"""Verbs of whole gangs, across spellings and owners, and what they look like on the wire."""

from muster.dialects import acts
from muster.dialects.verbs import Condition, Words, annotated, evict, time_text, with_condition, written
from tests.dialects.scenes import START, Scene, sizes

SIGS = "pod-group.scheduling.sigs.k8s.io"
GROUP = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: MIN}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  parallelism: 2
  template:
    metadata: {labels: {pod-group.scheduling.sigs.k8s.io: g}}
    spec: {containers: [{name: c, resources: {requests: {cpu: REQUEST}}}]}
"""


def jobs(minimum: int, *names: str) -> Scene:
    world = Scene(GROUP.replace("MIN", str(minimum)))
    for number, name in enumerate(names):
        world.apply(JOB.replace("NAME", name).replace("REQUEST", f"'{number + 1}'"))
    return world


def start(world: Scene, *names: str) -> None:
    for number, name in enumerate(names):
        for index in range(2):
            owner = ("batch/v1", "Job", name)
            world.pod(f"{name}-{index}", {SIGS: "g"}, owner=owner, requests={"cpu": str(number + 1)})
            world.bind(f"{name}-{index}", phase="Running")


def test_a_gang_of_two_jobs_is_stopped_and_resumed_as_one() -> None:
    world = jobs(4, "ps", "worker")
    start(world, "ps", "worker")
    reading = world.gang()
    assert [ref.name for ref in reading.owners] == ["ps", "worker"]
    assert acts.resize(reading, world.cluster(), 5) == ()
    world.send(acts.stop(reading, world.cluster(), "preempted"))
    for pod in world.pods():
        world.delete("Pod", pod.metadata.name)
    reading = world.gang()
    assert (reading.stage, reading.gang is not None) == ("stopped", True)
    assert [role.min for role in reading.gang.roles] == [2, 2] if reading.gang else False
    assert len(acts.resume(reading, world.cluster())) == 2


def test_a_gang_with_one_job_suspended_by_its_user_is_not_suspended() -> None:
    world = jobs(2, "ps", "worker")
    world.patch("Job", "ps", {"spec": {"suspend": True}})
    start(world, "worker")
    assert world.gang().stage == "running"


def test_members_of_no_owner_are_evicted_beside_owners_that_are_stopped() -> None:
    world = jobs(1, "ps")
    start(world, "ps")
    world.pod("bare", {SIGS: "g"})
    world.bind("bare", phase="Running")
    world.pod("waits", {SIGS: "g"})
    verbs = acts.stop(world.gang(), world.cluster(), "why")
    assert [(each.name, each.subresource) for each in verbs] == [("ps", ""), ("bare", "eviction")]


def test_a_minimum_no_owner_can_reach_is_told_with_the_fix() -> None:
    world = jobs(5, "ps")
    world.pod("ps-0", {SIGS: "g"}, owner=("batch/v1", "Job", "ps"))
    assert world.gang().reason == ("1 of 5 members of g exist; ps makes only 2: lower the minimum or raise its size")


def test_surplus_members_are_evicted_last_rank_first() -> None:
    world = jobs(1, "ps")
    start(world, "ps")
    reading = world.gang()
    verbs = acts.evictions(reading, [each.uid for each in reading.members])
    assert [each.name for each in verbs] == ["ps-1", "ps-0"]


def test_an_eviction_names_the_pod_it_means() -> None:
    verb = evict("default", "p", "u")
    assert (verb.resource.plural, verb.subresource, verb.send, verb.uid) == (
        "pods",
        "eviction",
        "create",
        "u",
    )
    assert verb.body["apiVersion"] == "policy/v1"


def test_a_gang_without_object_is_reported_by_its_pods_alone_and_remembered_on_the_first() -> None:
    world = Scene()
    for name in ("b", "a"):
        annotations = {"armadaproject.io/gangId": "g", "armadaproject.io/gangCardinality": "2"}
        world.pod(name, annotations=annotations)
    reading = world.gang()
    assert acts.report(reading, world.cluster(), Words("NoRoom", "full"), START) == ()
    (verb,) = acts.remember(reading, world.cluster(), None)
    assert (verb.resource.kind, verb.name) == ("Pod", "a")


def test_conditions_keep_the_time_of_their_last_turn_and_their_neighbours() -> None:
    old = Condition(type="A", status="False", reason="r", message="m", last_transition_time="then")
    other = Condition(type="B", status="True")
    assert with_condition([old, other], Condition(type="A", status="False", reason="r", message="m"), START) is None
    found = with_condition([old, other], Condition(type="A", status="False", reason="r", message="n"), START)
    assert found is not None
    assert (found[0].last_transition_time, found[1]) == ("then", other)
    found = with_condition([old, other], Condition(type="A", status="True", observed_generation=3), START)
    assert found is not None
    assert written(found)[0]["lastTransitionTime"] == time_text(START) == "2027-01-15T08:00:00Z"
    assert written(found)[0]["observedGeneration"] == 3


def test_a_mark_can_go_with_a_change_or_alone() -> None:
    assert annotated(None, {"a": "b"}) == {"metadata": {"annotations": {"a": "b"}}}
    assert annotated({"suspend": True}, {"a": None})["spec"] == {"suspend": True}


def test_a_volcano_gang_goes_on_where_its_job_was_aborted_by_muster() -> None:
    annotations = "{annotations: {scheduling.k8s.io/group-name: pg}}"
    world = Scene(
        f"""
{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: pg}}, spec: {{minMember: 2}}}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: train, annotations: {{muster.sh/stopped: why}}}}
spec: {{tasks: [{{name: w, replicas: 2, template: {{metadata: {annotations}}}}}]}}
status: {{state: {{phase: Aborted}}}}
"""
    )
    reading = world.gang()
    assert (reading.stage, sizes(reading)) == ("stopped", {"w": (2, 2, 0)})
    unmark, command = acts.resume(reading, world.cluster())
    assert unmark.body == {"metadata": {"annotations": {"muster.sh/stopped": None}}}
    assert command.body["action"] == "ResumeJob"
