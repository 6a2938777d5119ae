"""An event wakes the gangs it concerns, and no others."""

from muster.dialects.cluster import Ref
from muster.dialects.wake import touched
from tests.dialects.scenes import Scene


def keys(world: Scene, *ref: str) -> list[str]:
    group, kind, name = ref
    namespace = "" if kind == "PersistentVolume" else "default"
    return [str(key) for key in touched(Ref(group, kind, namespace, name), world.cluster())]


NATIVE = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: NAME}
spec: {parentCompositePodGroupName: PARENT, schedulingPolicy: {gang: {minCount: 1}}}
"""
COMPOSITE = """
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: NAME}
spec: {parentCompositePodGroupName: "PARENT"}
"""


def test_a_group_object_wakes_its_gang_even_before_it_exists() -> None:
    assert keys(Scene(), "scheduling.x-k8s.io", "PodGroup", "g") == ["podgroup.scheduling.x-k8s.io:default/g"]
    assert keys(Scene(), "scheduling.volcano.sh", "PodGroup", "g") == ["volcano:default/g"]
    assert keys(Scene(), "v1", "ConfigMap", "g") == []


def test_groups_of_one_tree_wake_each_other() -> None:
    world = Scene(COMPOSITE.replace("NAME", "root").replace("PARENT", ""))
    world.apply(COMPOSITE.replace("NAME", "mid").replace("PARENT", "root"))
    for name, parent in (("a", "root"), ("b", "mid"), ("c", "elsewhere")):
        world.apply(NATIVE.replace("NAME", name).replace("PARENT", parent))
    both = [f"podgroup.scheduling.k8s.io:default/{name}" for name in "ab"]
    assert keys(world, "scheduling.k8s.io", "PodGroup", "b") == both
    assert keys(world, "scheduling.k8s.io", "CompositePodGroup", "mid") == both
    assert keys(world, "scheduling.k8s.io", "PodGroup", "c") == ["podgroup.scheduling.k8s.io:default/c"]


def test_an_owner_wakes_what_it_makes_and_what_its_highest_owner_makes() -> None:
    world = Scene(
        """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: s}
spec: {replicas: 2}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: t
  ownerReferences:
  - {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: t, uid: uid-trainjob-t, controller: true}
"""
    )
    sets = ["leaderworkerset:default/s-0", "leaderworkerset:default/s-1"]
    assert keys(world, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "s") == sets
    assert keys(world, "jobset.x-k8s.io", "JobSet", "t") == ["trainjob:default/t"]


def test_a_claim_and_its_volume_wake_those_that_mount_it() -> None:
    world = Scene("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {volumeName: v}}")
    world.pod("a", volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "c"}}])
    world.pod("b")
    assert keys(world, "", "PersistentVolumeClaim", "c") == ["pod:default/a"]
    assert keys(world, "", "PersistentVolume", "v") == ["pod:default/a"]
    assert keys(world, "", "PersistentVolume", "w") == []


def test_an_owner_that_stops_being_a_gang_wakes_the_gang_it_was() -> None:
    world = Scene(
        """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {parallelism: 2, completions: 2, completionMode: Indexed}
"""
    )
    world.pod("j-0", owner=("batch/v1", "Job", "j"))
    before = world.cluster()
    ref = Ref("batch", "Job", "default", "j")
    world.patch("Job", "j", {"metadata": {"annotations": {"muster.sh/gang": "false"}}})
    after = world.cluster()
    after.pods, after.owners = before.pods, before.owners
    assert [str(key) for key in touched(ref, after)] == ["job:default/j"]
    assert touched(ref, world.cluster()) == ()
