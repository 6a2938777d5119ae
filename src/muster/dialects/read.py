"""Read a gang: its spelling's terms, what its owners will create, and its pods, joined into a `Reading`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from muster.dialects.assemble import assemble
from muster.dialects.cluster import Cluster, Key, Ref, meta_of
from muster.dialects.leaderworkerset import KIND as LEADER_WORKER_SET
from muster.dialects.limits import least
from muster.dialects.membership import POD, claims, top_owner
from muster.dialects.ownership import OwnerSays
from muster.dialects.podgroups import created
from muster.dialects.reading import Reading
from muster.dialects.table import OWNER_BY_KIND, OWNER_BY_NAME, SPELLING_BY_NAME
from muster.dialects.terms import Hold, Problem, Terms
from muster.objects.decode import Decoded
from muster.objects.owners import controller_of
from muster.objects.pods import Pod

_DONE_COUNTS = frozenset({"once-satisfied", "waiting-running-succeed"})
_REPLICAS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})


def read(key: Key, cluster: Cluster) -> Reading:
    """The gang of that key as the view has it, whatever the order of its pods."""
    pods = sorted(cluster.pods.get(key, ()), key=lambda pod: (pod.metadata.name, pod.metadata.uid))
    owners = owners_of(key, pods, cluster)
    if key.dialect in SPELLING_BY_NAME:
        terms = _spelled(key, pods, owners, cluster)
    elif key.dialect in OWNER_BY_NAME:
        terms = _owned(key, cluster)
    else:
        return assemble(key, _alone(key, pods), pods, owners, cluster, replica=_is_replica(pods))
    return assemble(key, terms, pods, owners, cluster)


def owners_of(key: Key, pods: Sequence[Pod], cluster: Cluster) -> tuple[Ref, ...]:
    """The highest owners of the gang's pods, and those known to make it while it has none."""
    if key.dialect == POD:
        return ()
    found = {_with_uid(ref, cluster) for ref in cluster.owners.get(key, ())}
    for pod in pods:
        owner = top_owner(pod, cluster)
        if owner is not None:
            found.add(_with_uid(owner[1], cluster))
    return tuple(sorted(found))


def _spelled(key: Key, pods: Sequence[Pod], owners: Sequence[Ref], cluster: Cluster) -> Terms:
    terms = SPELLING_BY_NAME[key.dialect].terms(key, pods, cluster)
    terms = replace(terms, problems=(*terms.problems, *_two_names(key, pods)))
    says = [(ref, each) for ref in owners for each in _says(ref, cluster)]
    if not says:
        return terms
    expected = tuple(
        replace(each, owner=ref)
        for ref, said in says
        for each in said.expected
        if _makes(ref, each.template, key, cluster)
    )
    if all(said.match == "waiting-and-running" for _, said in says) and terms.match in _DONE_COUNTS:
        # Each batch of a work queue is a quorum of its own; the last one may be smaller.
        terms = replace(terms, match="waiting-and-running")
        if all(said.tail for _, said in says):
            terms = replace(terms, minimum=min(terms.minimum or 1, sum(each.count for each in expected)))
    return replace(
        terms,
        expected=terms.expected or expected,
        suspended=all(said.suspended for _, said in says),
        finished=all(said.finished for _, said in says),
        limit=least(terms.limit, *(said.limit for _, said in says)),
        queue=terms.queue or next((said.queue for _, said in says if said.queue), ""),
        required_topology=terms.required_topology
        or next((said.required_topology for _, said in says if said.required_topology), ""),
    )


def _makes(ref: Ref, template: Pod, key: Key, cluster: Cluster) -> bool:
    """Whether pods of a template join the gang: it says so, or it says nothing and the group was made for it."""
    named = list(claims(template))
    return (key.dialect, key.name) in named or (not named and key in cluster.grouped.get(ref.full_name, ()))


def _owned(key: Key, cluster: Cluster) -> Terms:
    """An owner whose pods are a gang with no configuration."""
    kind = OWNER_BY_NAME[key.dialect]
    resource = kind.served.resource
    name = key.name.rpartition("-")[0] if kind is LEADER_WORKER_SET else key.name
    ref = Ref(resource.group, resource.kind, key.namespace, name)
    item = cluster.deref(ref)
    if item is None:
        message = f"{resource.kind} {key.namespace}/{name} is not known yet"
        return Terms(key.name, key.namespace, hold=Hold("WaitingForOwner", message))
    says, meta = kind.read(_any(item), cluster), meta_of(item)
    ref = replace(ref, uid=meta.uid)
    shares = {each.role: each.least for each in says.expected if each.least is not None}
    minimum = says.minimum
    if minimum is None and shares:
        minimum = sum(each.count if each.least is None else each.least for each in says.expected)
    grouped = kind is LEADER_WORKER_SET
    return Terms(
        name=key.name,
        namespace=key.namespace,
        uid=f"{meta.uid}/{key.name}" if grouped else meta.uid,
        minimum=minimum,
        role_minimum=shares,
        match=says.match,
        submitted=created(meta),
        timeout=says.timeout,
        limit=says.limit,
        queue=says.queue,
        required_topology=says.required_topology,
        annotations=meta.annotations,
        anchor=None if grouped else ref,
        expected=tuple(replace(each, owner=ref) for each in says.expected),
        suspended=says.suspended,
        finished=says.finished,
        problems=says.problems,
    )


def _alone(key: Key, pods: Sequence[Pod]) -> Terms:
    """A pod that belongs to nobody's gang is one of its own."""
    uid = pods[0].metadata.uid if len(pods) == 1 else ""
    anchor = Ref("", "Pod", key.namespace, key.name, uid)
    return Terms(key.name, key.namespace, uid=uid, minimum=1, anchor=anchor)


def _says(ref: Ref, cluster: Cluster) -> Iterator[OwnerSays]:
    kind, item = OWNER_BY_KIND.get((ref.group, ref.kind)), cluster.deref(ref)
    if kind is not None and item is not None:
        yield kind.read(_any(item), cluster)


def _two_names(key: Key, pods: Sequence[Pod]) -> Iterator[Problem]:
    """A pod that names one gang here and another there is refused: guessing would split one of them."""
    for pod in pods:
        for dialect, name in claims(pod):
            if name != key.name:
                names = f"{key.name} ({key.dialect}) and {name} ({dialect})"
                message = f"pod {pod.metadata.name} names two gangs, {names}; remove one"
                yield Problem("metadata", message, fatal=True)
                return


def _with_uid(ref: Ref, cluster: Cluster) -> Ref:
    item = cluster.deref(ref)
    return replace(ref, uid=meta_of(item).uid) if item is not None else ref


def _is_replica(pods: Sequence[Pod]) -> bool:
    owner = controller_of(pods[0].metadata) if pods else None
    return owner is not None and owner.kind in _REPLICAS


def _any(item: Decoded) -> Any:
    """The table pairs each kind with the type it decodes into."""
    return item
