"""Owners with no configuration: what their controllers create, in the order in which they create it."""

import pytest

from muster.dialects import acts
from tests.dialects.scenes import Scene, Tree, sizes

TEMPLATE = "{spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}"

JOBSET = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: train}}
spec:
  replicatedJobs:
  - name: driver
    replicas: 1
    template: {{spec: {{parallelism: 1, completions: 1, template: {TEMPLATE}}}}}
  - name: workers
    replicas: 2
    dependsOn: [{{name: driver, status: Ready}}]
    template: {{spec: {{parallelism: 2, completions: 2, template: {TEMPLATE}}}}}
"""


def child_job(world: Scene, name: str, *, owner: str = "train", kind: str = "JobSet") -> None:
    version = "jobset.x-k8s.io/v1alpha2" if kind == "JobSet" else "ray.io/v1"
    uid = f"uid-{kind.lower()}-{owner}"
    reference = {"apiVersion": version, "kind": kind, "name": owner, "uid": uid, "controller": True}
    meta: Tree = {"name": name, "ownerReferences": [reference]}
    tree: Tree = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta}
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
    world.put({**tree, "spec": spec})


def jobset_pod(world: Scene, replicated: str, job: int, index: int) -> None:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": replicated,
        "jobset.sigs.k8s.io/job-index": str(job),
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    name = f"train-{replicated}-{job}"
    world.pod(f"{name}-{index}-x7k2p", labels, owner=("batch/v1", "Job", name))


def play_jobset(world: Scene) -> None:
    """The driver first; the workers only once it is ready."""
    key = next(iter(world.gangs()))
    child_job(world, "train-driver-0")
    jobset_pod(world, "driver", 0, 0)
    reading = world.gangs()[key]
    assert (reading.hold, sizes(reading)) == (None, {"driver": (1, 1, 0), "workers": (4, 4, 4)})
    world.bind("train-driver-0-0-x7k2p", phase="Running")
    assert world.gangs()[key].stage == "running"
    for job in (0, 1):
        child_job(world, f"train-workers-{job}")
        for index in (1, 0):
            jobset_pod(world, "workers", job, index)
    reading = world.gangs()[key]
    assert (reading.stage, sizes(reading)["workers"]) == ("partial", (4, 4, 0))
    assert [each.name for each in reading.waiting(1)] == [
        f"train-workers-{job}-{index}-x7k2p" for job in (0, 1) for index in (0, 1)
    ]
    for each in reading.waiting(1):
        world.bind(each.name, phase="Running")
    assert world.gangs()[key].stage == "running"
    assert list(world.gangs()) == [key]


def test_a_jobset_with_dependencies_holds_seats_for_what_comes_later() -> None:
    world = Scene(JOBSET)
    play_jobset(world)
    (verb,) = acts.stop(world.gang(), world.cluster(), "why")
    assert (verb.resource.kind, verb.body["spec"]) == ("JobSet", {"suspend": True})


def test_a_trainjob_is_the_jobset_it_makes_under_its_own_switches() -> None:
    world = Scene(
        "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: train}, "
        "spec: {activeDeadlineSeconds: 60}}"
    )
    assert world.gang().reason == "no member of train exists yet"
    world.apply(JOBSET)
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train",
             "uid": "uid-trainjob-train", "controller": True}  # fmt: skip
    world.patch("JobSet", "train", {"metadata": {"ownerReferences": [owner]}})
    play_jobset(world)
    reading = world.gang()
    assert reading.gang is not None
    assert (str(reading.key), reading.gang.walltime) == ("trainjob:default/train", 60)
    (verb,) = acts.stop(reading, world.cluster(), "why")
    assert (verb.resource.group, verb.body["spec"]) == ("trainer.kubeflow.org", {"suspend": True})
    world.patch("TrainJob", "train", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    for pod in world.pods():
        world.phase(pod.metadata.name, "Succeeded")
    assert world.gang().stage == "done"


LWS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: serve}}
spec:
  replicas: 2
  startupPolicy: LeaderReady
  leaderWorkerTemplate:
    size: 3
    leaderTemplate: {TEMPLATE}
    workerTemplate: {{spec: {{containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: "8"}}}}}}]}}}}
"""


def lws_pod(world: Scene, group: int, worker: int) -> None:
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "serve",
        "leaderworkerset.sigs.k8s.io/group-index": str(group),
        "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
    }
    name = f"serve-{group}" + (f"-{worker}" if worker else "")
    requests = {"nvidia.com/gpu": "8"} if worker else {"cpu": "1"}
    owner = ("apps/v1", "StatefulSet", f"serve-{group}" if worker else "serve")
    world.pod(name, labels, owner=owner, requests=requests)


def test_each_group_of_a_leaderworkerset_is_a_gang_with_seats_for_its_workers() -> None:
    world = Scene(LWS)
    owner = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "serve",
             "uid": "uid-leaderworkerset-serve", "controller": True}  # fmt: skip
    meta: Tree = {"name": "serve", "ownerReferences": [owner]}
    world.put({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": {"replicas": 2}})
    lws_pod(world, 0, 0)
    lws_pod(world, 1, 0)
    gangs = world.gangs()
    assert list(gangs) == ["leaderworkerset:default/serve-0", "leaderworkerset:default/serve-1"]
    first = gangs["leaderworkerset:default/serve-0"]
    assert sizes(first) == {"leader": (1, 1, 0), "worker": (2, 2, 2)}
    assert first.gang is not None
    assert first.gang.uid != gangs["leaderworkerset:default/serve-1"].terms.uid
    world.bind("serve-0", phase="Running")
    labels = {"leaderworkerset.sigs.k8s.io/name": "serve"}
    meta = {"name": "serve-0", "labels": labels}
    worker_set: Tree = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta}
    world.put({**worker_set, "spec": {"replicas": 2}})
    lws_pod(world, 0, 1)
    lws_pod(world, 0, 2)
    gangs = world.gangs()
    assert len(gangs) == 2
    assert gangs["leaderworkerset:default/serve-0"].stage == "partial"
    for name in ("serve-0-1", "serve-0-2"):
        world.bind(name, phase="Running")
    running = world.gangs()["leaderworkerset:default/serve-0"]
    assert running.stage == "running"
    verbs = acts.stop(running, world.cluster(), "why")
    assert [(each.name, each.subresource) for each in verbs] == [
        (name, "eviction") for name in ("serve-0-2", "serve-0-1", "serve-0")
    ]


def test_a_group_whose_workers_come_at_once_waits_for_all_of_them() -> None:
    world = Scene(LWS)
    world.patch("LeaderWorkerSet", "serve", {"spec": {"startupPolicy": "LeaderCreated", "replicas": 1}})
    lws_pod(world, 0, 0)
    assert world.gang().gang is None
    lws_pod(world, 0, 1)
    lws_pod(world, 0, 2)
    assert sizes(world.gang()) == {"leader": (1, 1, 0), "worker": (2, 2, 0)}


KUBEFLOW = """
apiVersion: kubeflow.org/{version}
kind: {kind}
metadata: {{name: train}}
spec:
  {field}:
    {first}: {{replicas: 1, template: {template}}}
    Worker: {{replicas: 2, template: {template}}}
"""


@pytest.mark.parametrize(
    ("kind", "field", "version", "first"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "v1", "Master"),
        ("TFJob", "tfReplicaSpecs", "v1", "PS"),
        ("MPIJob", "mpiReplicaSpecs", "v2beta1", "Launcher"),
        ("XGBoostJob", "xgbReplicaSpecs", "v1", "Master"),
        ("PaddleJob", "paddleReplicaSpecs", "v1", "Master"),
    ],
)
def test_kubeflow_jobs_are_gangs_of_their_replica_types(kind: str, field: str, version: str, first: str) -> None:
    text = KUBEFLOW.format(version=version, kind=kind, field=field, first=first, template=TEMPLATE)
    world = Scene(text)
    for role, number in ((first.lower(), 1), ("worker", 2)):
        for index in range(number):
            labels = {
                "training.kubeflow.org/job-name": "train",
                "training.kubeflow.org/replica-type": role,
                "training.kubeflow.org/replica-index": str(index),
            }
            assert world.gang().gang is None
            world.pod(f"train-{role}-{index}", labels, owner=(f"kubeflow.org/{version}", kind, "train"))
    reading = world.gang()
    assert sizes(reading) == {first.lower(): (1, 1, 0), "worker": (2, 2, 0)}
    world.send(acts.stop(reading, world.cluster(), "why"))
    assert world.trees["kubeflow.org", kind, "default", "train"]["spec"]["runPolicy"] == {"suspend": True}


def test_an_mpi_launcher_that_waits_for_its_workers_has_its_seat_held() -> None:
    text = KUBEFLOW.format(
        version="v2beta1", kind="MPIJob", field="mpiReplicaSpecs", first="Launcher", template=TEMPLATE
    )
    world = Scene(text)
    world.patch("MPIJob", "train", {"spec": {"launcherCreationPolicy": "WaitForWorkersReady"}})
    for index in (0, 1):
        labels = {
            "training.kubeflow.org/job-role": "worker",
            "training.kubeflow.org/replica-index": str(index),
        }
        world.pod(f"train-worker-{index}", labels, owner=("kubeflow.org/v2beta1", "MPIJob", "train"))
    assert sizes(world.gang()) == {"launcher": (1, 1, 1), "worker": (2, 2, 0)}
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train",
             "uid": "uid-mpijob-train", "controller": True}  # fmt: skip
    meta = {"name": "train-launcher", "ownerReferences": [owner]}
    world.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {}})
    labels = {"training.kubeflow.org/job-role": "launcher"}
    world.pod("train-launcher-z9", labels, owner=("batch/v1", "Job", "train-launcher"))
    assert sizes(world.gang()) == {"launcher": (1, 1, 0), "worker": (2, 2, 0)}


def test_an_elastic_pytorchjob_starts_at_its_least_and_grows_to_its_most() -> None:
    text = KUBEFLOW.format(
        version="v1", kind="PyTorchJob", field="pytorchReplicaSpecs", first="Master", template=TEMPLATE
    )
    world = Scene(text)
    world.patch("PyTorchJob", "train", {"spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 6}}})
    owner = ("kubeflow.org/v1", "PyTorchJob", "train")
    for role, index in (("master", 0), ("worker", 0), ("worker", 1)):
        labels = {
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(index),
        }
        world.pod(f"train-{role}-{index}", labels, owner=owner)
    assert sizes(world.gang()) == {"master": (1, 1, 0), "worker": (1, 6, 0)}
    (verb,) = acts.resize(world.gang(), world.cluster(), 5)
    assert verb.body == {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 5}}}}


RAY_SPEC = f"""
  headGroupSpec: {{template: {TEMPLATE}}}
  workerGroupSpecs:
  - {{groupName: small, replicas: 2, minReplicas: 1, maxReplicas: 5, template: {TEMPLATE}}}
"""


def ray_pod(world: Scene, name: str, group: str) -> None:
    node_type = "head" if group == "headgroup" else "worker"
    labels = {"ray.io/cluster": "sim", "ray.io/node-type": node_type, "ray.io/group": group}
    world.pod(name, labels, owner=("ray.io/v1", "RayCluster", "sim"))


def test_a_raycluster_is_head_and_workers() -> None:
    world = Scene("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: sim}}\n")
    world.apply("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: sim}\nspec:" + RAY_SPEC)
    ray_pod(world, "sim-head-a", "headgroup")
    assert world.gang().gang is None
    ray_pod(world, "sim-small-worker-b", "small")
    ray_pod(world, "sim-small-worker-c", "small")
    assert sizes(world.gang()) == {"headgroup": (1, 1, 0), "small": (2, 2, 0)}
    (verb,) = acts.resize(world.gang(), world.cluster(), 4)
    assert (verb.send, [each["op"] for each in verb.body]) == ("json", ["test", "add"])
    world.patch("RayCluster", "sim", {"spec": {"enableInTreeAutoscaling": True}})
    assert sizes(world.gang()) == {"headgroup": (1, 1, 0), "small": (1, 2, 0)}
    assert acts.resize(world.gang(), world.cluster(), 4) == ()


def test_a_rayjob_holds_a_seat_for_its_submitter_and_is_stopped_itself() -> None:
    spec = RAY_SPEC.replace("\n  ", "\n    ")
    world = Scene("apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: job}\nspec:\n  rayClusterSpec:" + spec)
    reference = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": "job",
        "uid": "uid-rayjob-job",
        "controller": True,
    }
    world.apply("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: sim}\nspec:" + RAY_SPEC)
    world.patch("RayCluster", "sim", {"metadata": {"ownerReferences": [reference]}})
    ray_pod(world, "sim-head-a", "headgroup")
    ray_pod(world, "sim-small-worker-b", "small")
    ray_pod(world, "sim-small-worker-c", "small")
    assert sizes(world.gang()) == {"headgroup": (1, 1, 0), "small": (2, 2, 0), "member": (1, 1, 1)}
    for pod in world.pods():
        world.bind(pod.metadata.name, phase="Running")
    child_job(world, "job-submit", owner="job", kind="RayJob")
    world.pod("job-submit-q", owner=("batch/v1", "Job", "job-submit"), requests={"cpu": "500m", "memory": "200Mi"})
    reading = world.gang()
    assert (str(reading.key), reading.stage) == ("rayjob:default/job", "partial")
    (verb,) = acts.stop(reading, world.cluster(), "why")
    assert (verb.resource.plural, verb.body["spec"]) == ("rayjobs", {"suspend": True})


def statefulset(**spec: object) -> Scene:
    world = Scene()
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"replicas": 3, "template": template, **spec}
    world.put({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
    return world


def test_an_ordered_statefulset_starts_with_one_pod_and_seats_for_the_rest() -> None:
    world = statefulset()
    for number in range(3):
        world.pod(
            f"db-{number}",
            {"apps.kubernetes.io/pod-index": str(number)},
            owner=("apps/v1", "StatefulSet", "db"),
        )
        assert sizes(world.gang()) == {"member": (3, 3, 2 - number)}
        world.bind(f"db-{number}", phase="Running")
        assert world.gang().stage == "running"


def test_a_parallel_statefulset_waits_for_all_and_is_stopped_by_scaling() -> None:
    world = statefulset(podManagementPolicy="Parallel")
    for number in range(3):
        assert world.gang().gang is None
        world.pod(f"db-{number}", owner=("apps/v1", "StatefulSet", "db"))
    world.send(acts.stop(world.gang(), world.cluster(), "why"))
    for number in range(3):
        world.delete("Pod", f"db-{number}")
    reading = world.gang()
    assert (reading.stage, sizes(reading)) == ("stopped", {"member": (3, 3, 0)})
    assert acts.stop(reading, world.cluster(), "again") == ()
    world.send(acts.resume(reading, world.cluster()))
    assert world.trees["apps", "StatefulSet", "default", "db"]["spec"]["replicas"] == 3


def test_a_statefulset_may_opt_out() -> None:
    world = statefulset()
    world.patch("StatefulSet", "db", {"metadata": {"annotations": {"muster.sh/gang": "false"}}})
    world.pod("db-0", {"controller-revision-hash": "db-5"}, owner=("apps/v1", "StatefulSet", "db"))
    reading = world.gangs()["pod:default/db-0"]
    assert reading.gang is not None
    assert [each.away for each in reading.gang.roles[0].rules.pods_preferred] == [True, True]


def test_a_plain_pod_is_a_gang_of_one() -> None:
    world = Scene()
    world.pod("web", {"pod-template-hash": "h"}, owner=("apps/v1", "ReplicaSet", "web-1"))
    reading = world.gang()
    assert (sizes(reading), reading.terms.uid) == ({"member": (1, 1, 0)}, "uid-pod-web")
    world.bind("web", phase="Running")
    (verb,) = acts.stop(world.gang(), world.cluster(), "why")
    assert verb.subresource == "eviction"
    assert verb.body["deleteOptions"] == {"preconditions": {"uid": "uid-pod-web"}}
    assert acts.tolerates_eviction(world.gang(), world.cluster())
