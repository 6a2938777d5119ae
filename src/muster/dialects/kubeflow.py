"""Kubeflow's jobs by framework (PyTorchJob, TFJob, MPIJob and their kin): one shape, other field names.

An MPI launcher that is created only once its workers are ready has its seat held. PyTorch's elastic policy
gives the workers a least and a most.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from muster.dialects.cluster import Cluster, Item, Ref, Resource
from muster.dialects.limits import exec_time, least, queue_in
from muster.dialects.ownership import (
    OwnerKind,
    OwnerSays,
    StatusCondition,
    has_condition,
    said_gang,
    suspending,
    template_of,
)
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.dialects.verbs import Verb, patch
from muster.objects.decode import Decoded
from muster.objects.pods import Pod


class ReplicaSpec(Decoded, frozen=True):
    """Pods of one type."""

    replicas: int = 1
    template: Pod = Pod()


class SchedulingPolicy(Decoded, frozen=True):
    """What its gang scheduler would be told."""

    min_available: int | None = None
    queue: str = ""
    schedule_timeout_seconds: int | None = None


class RunPolicy(Decoded, frozen=True):
    """Limits and switches."""

    suspend: bool = False
    active_deadline_seconds: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class ElasticPolicy(Decoded, frozen=True):
    """Least and most workers of a PyTorchJob."""

    min_replicas: int | None = None
    max_replicas: int | None = None


Replicas = dict[str, ReplicaSpec]


class ReplicaJobSpec(Decoded, frozen=True):
    """The types of pods, under the name each framework gives them."""

    pytorch_replica_specs: Replicas = {}
    tf_replica_specs: Replicas = {}
    mpi_replica_specs: Replicas = {}
    xgb_replica_specs: Replicas = {}
    paddle_replica_specs: Replicas = {}
    jax_replica_specs: Replicas = {}
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: ElasticPolicy | None = None
    launcher_creation_policy: str = "AtStartup"

    @property
    def replicas(self) -> Mapping[str, ReplicaSpec]:
        """The one of them that is filled."""
        return (
            self.pytorch_replica_specs
            or self.tf_replica_specs
            or self.mpi_replica_specs
            or self.xgb_replica_specs
            or self.paddle_replica_specs
            or self.jax_replica_specs
        )


class ReplicaStatus(Decoded, frozen=True):
    """How far one type has come."""

    succeeded: int = 0


class ReplicaJobStatus(Decoded, frozen=True):
    """How far the job has come."""

    conditions: list[StatusCondition] = []
    replica_statuses: dict[str, ReplicaStatus] = {}


class ReplicaJob(Item, frozen=True):
    """A job of any of these kinds."""

    spec: ReplicaJobSpec = ReplicaJobSpec()
    status: ReplicaJobStatus = msgspec.field(default=ReplicaJobStatus())


_FIELDS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
_ORDER = ("launcher", "master", "chief", "ps", "worker", "evaluator")


def read(job: ReplicaJob, _cluster: Cluster) -> OwnerSays:
    """One role per replica type, in the order in which people name them."""
    spec, meta = job.spec, job.metadata
    policy = spec.run_policy.scheduling_policy or SchedulingPolicy()
    types = sorted(spec.replicas, key=lambda name: (_place(name), name))
    timeout = policy.schedule_timeout_seconds
    return OwnerSays(
        expected=tuple(_expected(job, name) for name in types),
        gang=said_gang(meta.annotations) is not False,
        minimum=policy.min_available if policy.min_available and policy.min_available > 0 else None,
        suspended=spec.run_policy.suspend,
        finished=has_condition(job.status.conditions, "Succeeded", "Failed"),
        limit=least(spec.run_policy.active_deadline_seconds, exec_time(meta.labels)),
        timeout=float(timeout) if timeout and timeout > 0 else None,
        queue=policy.queue or queue_in(meta.labels, meta.annotations),
    )


def _expected(job: ReplicaJob, name: str) -> Expected:
    each, elastic = job.spec.replicas[name], job.spec.elastic_policy
    role, status = name.lower(), job.status.replica_statuses.get(name)
    bends = elastic is not None and role == "worker"
    waits = role == "launcher" and job.spec.launcher_creation_policy == "WaitForWorkersReady"
    return Expected(
        role=role,
        count=each.replicas,
        template=template_of(each.template, job),
        least=min(elastic.min_replicas, each.replicas) if bends and elastic and elastic.min_replicas else None,
        most=max(elastic.max_replicas or 0, each.replicas) if bends and elastic else 0,
        later=waits,
        done=status.succeeded if status is not None else 0,
    )


def _place(name: str) -> int:
    role = name.lower()
    return _ORDER.index(role) if role in _ORDER else len(_ORDER)


def _resize(kind: str, served: Served, job: ReplicaJob, ref: Ref, members: int) -> tuple[Verb, ...]:
    """Workers are what grows; the types are a map, so that a merge patch reaches one of them."""
    worker = next((name for name in job.spec.replicas if name.lower() == "worker"), None)
    if worker is None:
        return ()
    body: dict[str, Any] = {"spec": {_FIELDS[kind]: {worker: {"replicas": members}}}}
    return (patch(served.resource, ref, body),)


def _kind(kind: str, plural: str, *, version: str = "v1", older: tuple[str, ...] = ()) -> OwnerKind:
    served = Served(Resource("kubeflow.org", version, kind, plural), ReplicaJob, older)
    stop, resume = suspending(served, "runPolicy", "suspend")
    resize = partial(_resize, kind, served) if kind == "PyTorchJob" else None
    return OwnerKind(kind.lower(), served, read, stop, resume, resize)


KINDS = (
    _kind("PyTorchJob", "pytorchjobs"),
    _kind("TFJob", "tfjobs"),
    _kind("MPIJob", "mpijobs", version="v2beta1", older=("v1",)),
    _kind("XGBoostJob", "xgboostjobs"),
    _kind("PaddleJob", "paddlejobs"),
    _kind("JAXJob", "jaxjobs"),
)
