"""StatefulSet (`apps/v1`): replicas that belong together. Ordered ones appear one by one, so seats are held.

There is nothing to suspend: it is stopped by scaling to zero, and the size to come back to is kept on it.
`muster.sh/gang: "false"` makes its pods independent, as for a database that may run short of a replica.
"""

from muster.dialects.cluster import Cluster, Item, Ref, Resource
from muster.dialects.limits import exec_time, queue_in
from muster.dialects.ownership import OwnerKind, OwnerSays, said_gang, template_of
from muster.dialects.ranks import role_of
from muster.dialects.spelling import Served
from muster.dialects.terms import Expected
from muster.dialects.verbs import Verb, annotated, patch
from muster.dialects.wishes import REPLICAS, STOPPED
from muster.objects.decode import Decoded
from muster.objects.pods import Pod


class StatefulSetSpec(Decoded, frozen=True):
    """What it makes."""

    replicas: int = 1
    pod_management_policy: str = "OrderedReady"
    template: Pod = Pod()


class StatefulSet(Item, frozen=True):
    """A StatefulSet."""

    spec: StatefulSetSpec = StatefulSetSpec()


SERVED = Served(Resource("apps", "v1", "StatefulSet", "statefulsets"), StatefulSet)


def read(item: StatefulSet, _cluster: Cluster) -> OwnerSays:
    """All replicas; where Muster scaled it to zero, those it had."""
    meta, spec = item.metadata, item.spec
    stopped = spec.replicas == 0 and STOPPED in meta.annotations
    replicas = _remembered(item) if stopped else spec.replicas
    template = template_of(spec.template, item)
    said = said_gang(meta.annotations, spec.template.metadata.annotations)
    ordered = spec.pod_management_policy != "Parallel"
    return OwnerSays(
        expected=(Expected(role_of(template), replicas, template, most=replicas, later=ordered),),
        gang=replicas > 1 if said is None else said,
        suspended=stopped,
        limit=exec_time(meta.labels),
        queue=queue_in(meta.labels, meta.annotations),
    )


def stop(item: StatefulSet, ref: Ref, why: str) -> tuple[Verb, ...]:
    """To zero, with the size kept; one that is at zero already keeps what it has."""
    if item.spec.replicas == 0:
        return ()
    kept = {STOPPED: why, REPLICAS: str(item.spec.replicas)}
    return (patch(SERVED.resource, ref, annotated({"replicas": 0}, kept)),)


def resume(item: StatefulSet, ref: Ref) -> tuple[Verb, ...]:
    """Back to the size it had."""
    return (patch(SERVED.resource, ref, annotated({"replicas": _remembered(item)}, {STOPPED: None, REPLICAS: None})),)


def resize(_item: StatefulSet, ref: Ref, members: int) -> tuple[Verb, ...]:
    """Another number of replicas."""
    return (patch(SERVED.resource, ref, {"spec": {"replicas": members}}),)


def _remembered(item: StatefulSet) -> int:
    text = item.metadata.annotations.get(REPLICAS, "")
    return int(text) if text.isdecimal() and 0 < len(text) < 7 else max(item.spec.replicas, 1)


KIND = OwnerKind("statefulset", SERVED, read, stop, resume, resize)
