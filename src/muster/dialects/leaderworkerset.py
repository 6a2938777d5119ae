"""LeaderWorkerSet (`leaderworkerset.x-k8s.io/v1`): one gang per group, not one per set.

Groups of a set are independent: inference replicas, prefill and decode. Under `LeaderReady`, and with
exclusive placement, workers appear only after their leader is ready or placed; their seats are held.
"""

from muster.dialects.cluster import Cluster, Item, Resource
from muster.dialects.limits import exec_time, queue_in
from muster.dialects.ownership import OwnerKind, OwnerSays, said_gang, template_of
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.objects.decode import Decoded
from muster.objects.pods import Pod

NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"


class LeaderWorkerTemplate(Decoded, frozen=True):
    """One group: a leader and size - 1 workers."""

    leader_template: Pod | None = None
    worker_template: Pod = Pod()
    size: int = 1


class LeaderWorkerSetSpec(Decoded, frozen=True):
    """So many groups."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str = "LeaderCreated"


class LeaderWorkerSet(Item, frozen=True):
    """A LeaderWorkerSet."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


SERVED = Served(Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"), LeaderWorkerSet)


def group_of(pod: Pod) -> str | None:
    """The group a pod is in, named as its leader pod is."""
    labels = pod.metadata.labels
    if labels.get(NAME) and labels.get(GROUP, "").isdecimal():
        return f"{labels[NAME]}-{labels[GROUP]}"
    return None


def groups(item: LeaderWorkerSet) -> tuple[str, ...]:
    """The names of all groups of a set."""
    return tuple(f"{item.metadata.name}-{number}" for number in range(max(item.spec.replicas, 0)))


def read(item: LeaderWorkerSet, _cluster: Cluster) -> OwnerSays:
    """The members of one group."""
    spec, meta = item.spec, item.metadata
    template = spec.leader_worker_template
    leader = template.leader_template or template.worker_template
    later = spec.startup_policy == "LeaderReady" or EXCLUSIVE in meta.annotations
    workers = Expected("worker", max(template.size - 1, 0), template_of(template.worker_template, item), later=later)
    return OwnerSays(
        expected=(Expected("leader", 1, template_of(leader, item)), *([workers] if workers.count else [])),
        gang=said_gang(meta.annotations) is not False,
        limit=exec_time(meta.labels),
        queue=queue_in(meta.labels, meta.annotations),
    )


KIND = OwnerKind("leaderworkerset", SERVED, read)
