"""What holds for any gang: pod order does not matter, counts add up, and no text makes reading fail."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.dialects.membership import claims
from muster.dialects.read import read
from muster.dialects.reading import Reading
from muster.dialects.table import OWNERS, SPELLINGS
from muster.dialects.wishes import KNOWN
from tests.dialects.scenes import Scene

SIGS = "pod-group.scheduling.sigs.k8s.io"
STATES = ("waiting", "gated", "bound", "running", "succeeded", "failed", "ending")

pods = st.lists(st.tuples(st.sampled_from(STATES), st.integers(1, 2), st.integers(0, 3)), max_size=9)


def put(world: Scene, number: int, state: str, cpus: int) -> None:
    name = f"p-{number}"
    gates = [{"name": "g"}] if state == "gated" else []
    world.pod(name, {SIGS: "g"}, requests={"cpu": str(cpus)}, schedulingGates=gates)
    phase = {"running": "Running", "ending": "Running", "succeeded": "Succeeded", "failed": "Failed"}.get(state)
    if phase is not None or state == "bound":
        world.bind(name, f"n{number % 3}", phase or "Pending")
    if state == "ending":
        world.patch("Pod", name, {"metadata": {"deletionTimestamp": "2027-01-15T09:00:00Z"}})


def world_of(members: list[tuple[str, int, int]], minimum: int) -> Scene:
    world = Scene(
        "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, "
        f"spec: {{minMember: {minimum}}}}}"
    )
    for number, (state, cpus, _) in enumerate(members):
        put(world, number, state, cpus)
    return world


def both_ways(world: Scene) -> tuple[Reading, Reading]:
    forward, backward = world.cluster(), world.cluster(backwards=True)
    (key,) = forward.pods
    return read(key, forward), read(key, backward)


@given(pods.filter(bool), st.integers(0, 6))
@settings(max_examples=150, deadline=None)
def test_the_order_of_pods_does_not_matter_and_reading_twice_is_reading_once(
    members: list[tuple[str, int, int]], minimum: int
) -> None:
    forward, backward = both_ways(world_of(members, minimum))
    assert forward == backward


@given(pods.filter(bool), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_counts_quorum_and_seats_agree(members: list[tuple[str, int, int]], minimum: int) -> None:
    reading, _ = both_ways(world_of(members, minimum))
    counts, states = reading.counts, [state for state, _, _ in members]
    assert (counts.bound, counts.running) == (states.count("bound"), states.count("running"))
    assert (counts.succeeded, counts.failed) == (states.count("succeeded"), states.count("failed"))
    held, done = counts.scheduled, counts.succeeded
    if held:
        assert reading.stage == ("running" if held + done >= minimum else "partial")
        assert reading.running is not None
        assert sum(sum(each.counts) for each in reading.running.seats) == held
        assert reading.running.gang.members == max(minimum, 0)
        assert sum(reading.running.succeeded) == done
        told = reading.stage == "partial" and counts.waiting > 0
        assert (reading.running.partial_since is not None) == told
    else:
        assert reading.running is None
        ready = counts.waiting > 0 and counts.waiting + done >= minimum
        assert (reading.gang is not None) == (ready and reading.stage == "waiting")
        if reading.gang is not None:
            assert reading.gang.members == max(minimum - done, 1)
    if reading.gang is not None:
        assert all(role.min <= role.most for role in reading.gang.roles)
        assert len({role.name for role in reading.gang.roles}) == len(reading.gang.roles)


TEXT_KEYS = sorted(
    {
        *KNOWN,
        SIGS,
        "pod-group.scheduling.sigs.k8s.io/name",
        "pod-group.scheduling.sigs.k8s.io/min-available",
        "pod-group.scheduling.sigs.k8s.io/groups",
        "gang.scheduling.koordinator.sh/name",
        "gang.scheduling.koordinator.sh/min-available",
        "gang.scheduling.koordinator.sh/total-number",
        "gang.scheduling.koordinator.sh/mode",
        "gang.scheduling.koordinator.sh/match-policy",
        "gang.scheduling.koordinator.sh/waiting-time",
        "gang.scheduling.koordinator.sh/groups",
        "scheduling.x-k8s.io/pod-group",
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-min-member",
        "pod-group-name",
        "kueue.x-k8s.io/pod-group-name",
        "kueue.x-k8s.io/pod-group-total-count",
        "kueue.x-k8s.io/max-exec-time-seconds",
        "yunikorn.apache.org/app-id",
        "yunikorn.apache.org/task-groups",
        "yunikorn.apache.org/task-group-name",
        "yunikorn.apache.org/schedulingPolicyParameters",
        "armadaproject.io/gangId",
        "armadaproject.io/gangCardinality",
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.sigs.k8s.io/group-index",
        "batch.kubernetes.io/job-completion-index",
        "alibabacloud.com/compute-class",
    }
)
texts = st.dictionaries(st.sampled_from(TEXT_KEYS), st.one_of(st.text(max_size=30), st.integers().map(str)), max_size=6)


@given(texts, texts)
@settings(max_examples=300, deadline=None)
def test_nothing_written_on_a_pod_makes_reading_fail(labels: dict[str, str], annotations: dict[str, str]) -> None:
    world = Scene()
    world.pod("a", labels, annotations=annotations)
    world.pod("b", labels, annotations=annotations)
    for reading in world.gangs().values():
        assert reading.gang is not None or reading.reason
        assert "\n" not in reading.reason + "".join(str(each) for each in reading.problems)


OWNER_KINDS = [(each.served.resource.group, each.served.resource.version, each.served.resource.kind) for each in OWNERS]
template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
small = st.integers(0, 3)
specs = st.fixed_dictionaries(
    {},
    optional={
        "parallelism": small,
        "completions": small,
        "completionMode": st.sampled_from(["Indexed", "NonIndexed"]),
        "replicas": small,
        "suspend": st.booleans(),
        "template": st.just(template),
        "replicatedJobs": st.just([{"name": "a", "replicas": 2, "template": {"spec": {"template": template}}}]),
        "tasks": st.just([{"name": "t", "replicas": 2, "template": template}]),
        "headGroupSpec": st.just({"template": template}),
        "workerGroupSpecs": st.lists(
            st.fixed_dictionaries({"groupName": st.just("w"), "replicas": small, "template": st.just(template)}),
            max_size=2,
        ),
        "mpiReplicaSpecs": st.dictionaries(
            st.sampled_from(["Launcher", "Worker"]),
            st.fixed_dictionaries({"replicas": small, "template": st.just(template)}),
        ),
    },
)


@given(st.sampled_from(OWNER_KINDS), specs, texts)
@settings(max_examples=300, deadline=None)
def test_owners_of_any_shape_are_read(
    kind: tuple[str, str, str], spec: dict[str, Any], annotations: dict[str, str]
) -> None:
    group, version, name = kind
    world = Scene()
    meta = {"name": "o-0", "annotations": annotations}
    world.put({"apiVersion": f"{group}/{version}", "kind": name, "metadata": meta, "spec": spec})
    world.pod("a", owner=(f"{group}/{version}", name, "o-0"))
    for reading in world.gangs().values():
        assert reading.gang is not None or reading.reason or reading.stage == "done"


def test_names_in_the_table_are_unique_and_a_plain_pod_is_claimed_by_none() -> None:
    names = [*(each.name for each in SPELLINGS), *(each.name for each in OWNERS)]
    assert len(set(names)) == len(names)
    world = Scene()
    world.pod("a", {"app": "web"})
    assert list(claims(world.pods()[0])) == []
