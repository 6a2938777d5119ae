"""Scenarios of other projects' own tests that are about reading a gang, by the names in our references.

SP and K are scheduler-plugins and Koordinator by number; E, G, Q, A, C and J are Kubernetes' by letter. An
outcome is `start LEAST/MOST`, `hold REASON`, `refuse FIELD`, or a stage with its least and most.
"""

from collections.abc import Callable
from typing import Any

import pytest

from muster.dialects.podgroup_sigs import phase as sigs_phase
from muster.dialects.podgroup_x import phase as x_phase
from muster.dialects.reading import Counts, Reading
from tests.dialects.scenes import Scene

SIGS = "pod-group.scheduling.sigs.k8s.io"
X = "scheduling.x-k8s.io/pod-group"
K = "gang.scheduling.koordinator.sh/"


def outcome(reading: Reading) -> str:
    if reading.refused is not None:
        return f"refuse {reading.refused.field}"
    if reading.hold is not None:
        return f"hold {reading.hold.reason}"
    if reading.gang is None:
        return reading.stage
    least, most = reading.gang.members, sum(role.most for role in reading.gang.roles)
    return f"{'start' if reading.stage == 'waiting' else reading.stage} {least}/{most}"


def group(minimum: int, api: str = "x-k8s.io", **spec: Any) -> Scene:
    world = Scene()
    spec = {"minMember": minimum, **spec}
    meta = {"name": "g"}
    world.put({"apiVersion": f"scheduling.{api}/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": spec})
    return world


def plugin(minimum: int, *states: str, api: str = "x-k8s.io", **spec: Any) -> Scene:
    """A PodGroup and pods in these states."""
    world = group(minimum, api, **spec)
    label = X if api == "x-k8s.io" else SIGS
    for number, state in enumerate(states):
        member(world, f"p{number}", state, labels={label: "g"})
    return world


def member(world: Scene, name: str, state: str = "waiting", **more: Any) -> None:
    gates = [{"name": "g"}] if state == "gated" else []
    world.pod(name, schedulingGates=gates, **more)
    if state not in {"waiting", "gated"}:
        world.bind(name, phase="Pending" if state == "bound" else state)


def native(minimum: int | None, *states: str, **more: Any) -> Scene:
    world = Scene()
    policy = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    spec = {"schedulingPolicy": policy}
    world.put(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": spec,
        }
    )
    for number, state in enumerate(states):
        member(world, f"p{number}", state, schedulingGroup={"podGroupName": "g"}, **more)
    return world


def annotated(*states: str, **texts: str) -> Scene:
    world = Scene()
    annotations = {K + "name": "g", **{K + key.replace("_", "-"): text for key, text in texts.items()}}
    for number, state in enumerate(states):
        member(world, f"p{number}", state, annotations=annotations)
    return world


def changed(world: Scene, kind: str, name: str, body: Any) -> Scene:
    world.patch(kind, name, body)
    return world


def without(world: Scene, kind: str, name: str) -> Scene:
    world.delete(kind, name)
    return world


W, R, S, F = "waiting", "Running", "Succeeded", "Failed"

SCENARIOS: dict[str, tuple[Callable[[], Scene], str]] = {
    # scheduler-plugins
    "SP-12 six replicas, minimum 3": (lambda: plugin(3, W, W, W, W, W, W), "start 3/6"),
    "SP-14 label to a missing PodGroup": (
        lambda: without(plugin(1, W), "PodGroup", "g"),
        "hold WaitingForPodGroup",
    ),
    "SP-15 fewer pods than the minimum": (lambda: plugin(3, W, W), "hold WaitingForMembers"),
    "SP-15 as many": (lambda: plugin(3, W, W, W), "start 3/3"),
    "SP-15 more": (lambda: plugin(3, W, W, W, W), "start 3/4"),
    "SP-16 one gated of three, minimum 2": (lambda: plugin(2, W, W, "gated"), "start 2/2"),
    "SP-17 one gated of three, minimum 3": (lambda: plugin(3, W, W, "gated"), "hold Gated"),
    "SP-18 all siblings gated": (lambda: plugin(2, W, "gated", "gated"), "hold Gated"),
    "SP-24 quorum runs, one extra waits": (lambda: plugin(2, R, R, W), "running 2/3"),
    "SP-10 a completed member counts here, on purpose": (lambda: plugin(6, S, W, W, W, W, W), "start 5/5"),
    # Koordinator
    "K-43 pod before its PodGroup": (
        lambda: without(plugin(1, W, api="sigs.k8s.io"), "PodGroup", "g"),
        "hold WaitingForPodGroup",
    ),
    "K-44 minMember 2 to 3": (
        lambda: changed(plugin(2, W, W, api="sigs.k8s.io"), "PodGroup", "g", {"spec": {"minMember": 3}}),
        "hold WaitingForMembers",
    ),
    "K-46 minimum cannot be read anywhere": (
        lambda: annotated(W, min_available="xxx"),
        f"refuse {K}min-available",
    ),
    "K-50 pods below the minimum": (lambda: annotated(W, min_available="2"), "hold WaitingForMembers"),
    "K-51 once satisfied, later members go as they come": (
        lambda: changed(plugin(3, R, W, W, api="sigs.k8s.io"), "PodGroup", "g", {"status": {"phase": "Running"}}),
        "running 1/3",
    ),
    "K-52 only-waiting with one running": (
        lambda: annotated(R, W, W, min_available="3", match_policy="only-waiting"),
        "hold WaitingForMembers",
    ),
    "K-53 waiting-and-running with one running": (
        lambda: annotated(R, W, W, min_available="3", match_policy="waiting-and-running"),
        "partial 3/3",
    ),
    "K-62 minMember 0": (lambda: plugin(0, W, W, api="sigs.k8s.io"), "start 1/2"),
    "ACK waiting-running-succeed": (
        lambda: annotated(S, R, W, min_available="3", match_policy="waiting-running-succeed"),
        "partial 3/3",
    ),
    # Kubernetes
    "E1 minCount 2, one pod": (lambda: native(2, W), "hold WaitingForMembers"),
    "E1 second pod": (lambda: native(2, W, W), "start 2/2"),
    "E2 basic": (lambda: native(None, W), "start 1/1"),
    "G2 a fourth after three run": (lambda: native(3, R, R, R, W), "running 3/4"),
    "G3 two of three": (lambda: native(3, W, W), "hold WaitingForMembers"),
    "G4 pods before their group": (lambda: without(native(1, W), "PodGroup", "g"), "hold WaitingForPodGroup"),
    "G5 four pods, minCount 3": (lambda: native(3, W, W, W, W), "start 3/4"),
    "G10 basic, pods before their group": (
        lambda: without(native(None, W), "PodGroup", "g"),
        "hold WaitingForPodGroup",
    ),
    "G15 minCount 5 lowered to 4": (
        lambda: changed(
            native(5, W, W, W, W), "PodGroup", "g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
        ),
        "start 4/4",
    ),
    "G17 minCount 5 raised to 6": (
        lambda: changed(
            native(5, W, W, W, W), "PodGroup", "g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 6}}}}
        ),
        "hold WaitingForMembers",
    ),
    "G18 mixed schedulers": (
        lambda: changed(native(2, W, W), "Pod", "p1", {"spec": {"schedulerName": "other"}}),
        "refuse spec.schedulerName",
    ),
    "G18 priority unlike the group's": (
        lambda: changed(native(2, W, W, priority=5), "PodGroup", "g", {"spec": {"priority": 7}}),
        "refuse spec.priority",
    ),
    "G18 mixed preemption policies": (
        lambda: changed(native(2, W, W), "Pod", "p1", {"spec": {"preemptionPolicy": "Never"}}),
        "refuse spec.preemptionPolicy",
    ),
    "Q2 one gated member blocks all": (lambda: native(2, W, W, "gated"), "hold Gated"),
    "Q4 group deleted while members wait": (
        lambda: without(native(2, W, W), "PodGroup", "g"),
        "hold WaitingForPodGroup",
    ),
    "a surplus member after the quorum is done": (lambda: plugin(2, S, S, W), "start 1/1"),
    "142330 an index fails after others completed": (lambda: native(3, S, S, F, W), "start 1/1"),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    build, expected = SCENARIOS[name]
    assert outcome(build().gang()) == expected


STATUS: dict[str, tuple[Counts, str, str]] = {
    "34 bound, not running": (Counts(bound=3), "Scheduling", "Scheduled"),
    "34 all run": (Counts(running=3), "Running", "Running"),
    "35 all succeeded": (Counts(succeeded=3), "Finished", "Finished"),
    "36 one succeeded": (Counts(running=2, succeeded=1), "Running", "Running"),
    "37 one failed": (Counts(running=2, failed=1), "Failed", "Failed"),
    "38 no member": (Counts(), "Pending", "Pending"),
    "39 fewer than the minimum": (Counts(waiting=2), "Pending", "Pending"),
    "40 members lost while running": (Counts(running=2), "Pending", "Scheduling"),
    "42 enough, none on a node": (Counts(waiting=3), "Scheduling", "PreScheduling"),
    "63 bound but not running": (Counts(bound=3, waiting=1), "Scheduling", "Scheduled"),
}


@pytest.mark.parametrize("name", STATUS)
def test_status_scenario(name: str) -> None:
    counts, plugins, koordinator = STATUS[name]
    assert (x_phase(counts, 3), sigs_phase(counts, 3)) == (plugins, koordinator)


@pytest.mark.parametrize(
    ("name", "seconds", "timeout"), [("61 none", None, None), ("61 zero", 0, None), ("61 ten", 10, 10.0)]
)
@pytest.mark.parametrize("api", ["x-k8s.io", "sigs.k8s.io"])
def test_schedule_timeout(name: str, seconds: int | None, timeout: float | None, api: str) -> None:
    spec = {} if seconds is None else {"scheduleTimeoutSeconds": seconds}
    assert plugin(1, W, api=api, **spec).gang().terms.timeout == timeout


def test_58_an_annotated_gang_is_forgotten_with_its_last_pod_and_an_object_stays() -> None:
    assert without(annotated(W, min_available="1"), "Pod", "p0").gangs() == {}
    world = without(plugin(1, W), "Pod", "p0")
    assert ("scheduling.x-k8s.io", "PodGroup", "default", "g") in world.trees


def test_a3_and_a4_members_that_share_a_claim_of_one_pod() -> None:
    world = native(2, W, W)
    for number in range(2):
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": f"c{number}"}}
        world.put({**claim, "spec": {"volumeName": "v", "accessModes": ["ReadWriteOncePod"]}})
        volume = [{"name": "v", "persistentVolumeClaim": {"claimName": "c0"}}]
        world.patch("Pod", f"p{number}", {"spec": {"volumes": volume}})
    assert outcome(world.gang()) == "refuse spec.volumes"
    world.patch("Pod", "p1", {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}]}})
    assert outcome(world.gang()) == "start 2/2"
