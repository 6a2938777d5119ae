"""KubeRay (`ray.io/v1`): RayCluster and RayJob, head and workers as roles of one gang.

Where Ray's own autoscaler runs it decides the number of workers; their least is the quorum then, and nobody
else resizes them. A RayJob's submitter appears once its cluster is ready, so its seat is held.
"""

from dataclasses import replace

import msgspec

from muster.dialects.cluster import Cluster, Item, Ref, Resource
from muster.dialects.limits import exec_time, least, queue_in
from muster.dialects.ownership import OwnerKind, OwnerSays, said_gang, suspending, template_of
from muster.dialects.ranks import MEMBER
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.dialects.verbs import Verb
from muster.objects.decode import Decoded
from muster.objects.pods import Container, Pod, PodSpec, ResourceRequirements

HEAD = "headgroup"
SUBMITTER = Pod(
    spec=PodSpec(
        containers=[
            Container(name="submitter", resources=ResourceRequirements(requests={"cpu": "500m", "memory": "200Mi"}))
        ]
    )
)
"""What KubeRay asks for a submitter of its own making."""


class HeadGroup(Decoded, frozen=True):
    """The head."""

    template: Pod = Pod()


class WorkerGroup(Decoded, frozen=True):
    """Workers of one template, possibly several hosts to a replica."""

    group_name: str = ""
    replicas: int = 0
    min_replicas: int = 0
    num_of_hosts: int = 1
    suspend: bool = False
    template: Pod = Pod()


class RayClusterSpec(Decoded, frozen=True):
    """Head and workers."""

    head_group_spec: HeadGroup = HeadGroup()
    worker_group_specs: list[WorkerGroup] = []
    enable_in_tree_autoscaling: bool = False
    suspend: bool = False


class RayCluster(Item, frozen=True):
    """A RayCluster."""

    spec: RayClusterSpec = RayClusterSpec()


class RayJobSpec(Decoded, frozen=True):
    """A cluster of its own, and what to submit to it."""

    ray_cluster_spec: RayClusterSpec | None = None
    suspend: bool = False
    submission_mode: str = "K8sJobMode"
    submitter_pod_template: Pod | None = None
    active_deadline_seconds: int | None = None


class RayJobStatus(Decoded, frozen=True):
    """How far it has come."""

    job_deployment_status: str = ""


class RayJob(Item, frozen=True):
    """A RayJob."""

    spec: RayJobSpec = RayJobSpec()
    status: RayJobStatus = msgspec.field(default=RayJobStatus())


CLUSTERS = Served(Resource("ray.io", "v1", "RayCluster", "rayclusters"), RayCluster, ("v1alpha1",))
JOBS = Served(Resource("ray.io", "v1", "RayJob", "rayjobs"), RayJob, ("v1alpha1",))


def read_cluster(item: RayCluster, _cluster: Cluster) -> OwnerSays:
    """Head and worker groups."""
    meta = item.metadata
    return OwnerSays(
        expected=_members(item, item.spec),
        gang=said_gang(meta.annotations) is not False,
        suspended=item.spec.suspend,
        limit=exec_time(meta.labels),
        queue=queue_in(meta.labels, meta.annotations),
    )


def read_job(item: RayJob, _cluster: Cluster) -> OwnerSays:
    """The cluster it makes, and the submitter that comes later."""
    meta, spec = item.metadata, item.spec
    members = _members(item, spec.ray_cluster_spec) if spec.ray_cluster_spec is not None else ()
    submitter: tuple[Expected, ...] = ()
    if spec.submission_mode == "K8sJobMode":
        template = template_of(spec.submitter_pod_template or SUBMITTER, item)
        submitter = (Expected(MEMBER, 1, template, later=True),)
    return OwnerSays(
        expected=(*members, *submitter),
        gang=said_gang(meta.annotations) is not False,
        suspended=spec.suspend,
        finished=item.status.job_deployment_status in {"Complete", "Failed"},
        limit=least(spec.active_deadline_seconds, exec_time(meta.labels)),
        queue=queue_in(meta.labels, meta.annotations),
    )


def _members(owner: Item, spec: RayClusterSpec) -> tuple[Expected, ...]:
    head = Expected(HEAD, 1, template_of(spec.head_group_spec.template, owner))
    groups = [_group(owner, each, spec.enable_in_tree_autoscaling) for each in spec.worker_group_specs]
    return (head, *groups)


def _group(owner: Item, group: WorkerGroup, autoscaled: bool) -> Expected:
    hosts = max(group.num_of_hosts, 1)
    count = 0 if group.suspend else max(group.replicas, group.min_replicas) * hosts
    found = Expected(
        role=group.group_name.lower(),
        count=count,
        template=template_of(group.template, owner),
        most=0 if autoscaled or hosts > 1 else count,
    )
    return replace(found, least=min(group.min_replicas * hosts, count)) if autoscaled else found


def resize(item: RayCluster, ref: Ref, members: int) -> tuple[Verb, ...]:
    """The largest group is resized. Groups are a list, so the patch tests that it is still the one meant."""
    groups = item.spec.worker_group_specs
    if not groups or item.spec.enable_in_tree_autoscaling:
        return ()
    number = max(range(len(groups)), key=lambda index: (groups[index].replicas, -index))
    path = f"/spec/workerGroupSpecs/{number}"
    operations = [
        {"op": "test", "path": f"{path}/groupName", "value": groups[number].group_name},
        {"op": "add", "path": f"{path}/replicas", "value": members},
    ]
    return (Verb(CLUSTERS.resource, ref.namespace, ref.name, "json", operations, uid=ref.uid),)


_STOP_CLUSTER, _RESUME_CLUSTER = suspending(CLUSTERS, "suspend")
_STOP_JOB, _RESUME_JOB = suspending(JOBS, "suspend")
KINDS = (
    OwnerKind("raycluster", CLUSTERS, read_cluster, _STOP_CLUSTER, _RESUME_CLUSTER, resize),
    OwnerKind("rayjob", JOBS, read_job, _STOP_JOB, _RESUME_JOB),
)
