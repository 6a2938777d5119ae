"""CompositePodGroup: groups of groups that start together, at any depth.

The brain knows one level: gangs of a group start together, all of them or at least so many. A tree in which
only the top asks for fewer than all its children fits that; deeper partial quorums are planned as if all
were needed, which is stricter than asked and never wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.dialects.cluster import Cluster, Item, Key, Resource
from muster.dialects.groupspec import Constraints, Disruption, Gang, priority_in
from muster.dialects.terms import Hold, Problem
from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta

RESOURCE = Resource("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups")
_DEPTH = 8


class CompositePolicy(Decoded, frozen=True):
    """Without a gang children start as they can."""

    gang: Gang | None = None


class CompositeSpec(Decoded, frozen=True):
    """What the groups ask for together."""

    parent_composite_pod_group_name: str = ""
    scheduling_policy: CompositePolicy = CompositePolicy()
    scheduling_constraints: Constraints = Constraints()
    disruption_mode: Disruption = Disruption()
    priority: int | None = None
    priority_class_name: str = ""


class CompositePodGroup(Item, frozen=True):
    """A group of groups."""

    spec: CompositeSpec = CompositeSpec()


@dataclass(frozen=True, slots=True)
class Tree:
    """What the parents of one PodGroup come to. `top` is the group that starts together; empty: none."""

    top: str = ""
    size: int = 1
    least: int = 0
    topology: str = ""
    priority: int | None = None
    whole: bool = False  # some parent falls as a whole
    hold: Hold | None = None
    problems: tuple[Problem, ...] = ()


def together(key: Key, parent: str, cluster: Cluster) -> Tree:
    """Climb from a PodGroup to its root."""
    chain: list[CompositePodGroup] = []
    while parent and len(chain) < _DEPTH:
        found = cluster.find(CompositePodGroup, RESOURCE.group, RESOURCE.kind, key.namespace, parent)
        if found is None:
            message = f"spec.parentCompositePodGroupName names {parent}, which does not exist; create it"
            return Tree(hold=Hold("WaitingForParent", message))
        if found in chain:
            message = f"{parent} is its own ancestor; correct the parents"
            return Tree(problems=(Problem("spec.parentCompositePodGroupName", message, fatal=True),))
        chain.append(found)
        parent = found.spec.parent_composite_pod_group_name
    gangs = [each for each in chain if each.spec.scheduling_policy.gang is not None]
    topology = next(
        (each.spec.scheduling_constraints.key for each in chain if each.spec.scheduling_constraints.key), ""
    )
    whole = any(each.spec.disruption_mode.all is not None for each in chain)
    if not gangs:
        return Tree(topology=topology, whole=whole)
    return _started_together(key, gangs, chain[-1], topology, whole, cluster)


def _started_together(
    key: Key,
    gangs: list[CompositePodGroup],
    root: CompositePodGroup,
    topology: str,
    whole: bool,
    cluster: Cluster,
) -> Tree:
    top = gangs[-1]
    name = top.metadata.name
    for each in gangs:
        short = _short_of_children(key, each, cluster)
        if short is not None:
            return Tree(top=f"{key.dialect}:{key.namespace}/{name}", hold=short)
    size = sum(1 for _ in leaves(key.namespace, name, cluster))
    children = list(_children(key.namespace, name, cluster))
    needed = _min_groups(top)
    flat = all(kind == "PodGroup" for kind, _ in children)
    return Tree(
        top=f"{key.dialect}:{key.namespace}/{name}",
        size=size,
        least=needed if flat and needed < size else 0,
        topology=topology,
        priority=priority_in(root.spec.priority, root.spec.priority_class_name, cluster),
        whole=whole,
    )


def _short_of_children(key: Key, group: CompositePodGroup, cluster: Cluster) -> Hold | None:
    name, needed = group.metadata.name, _min_groups(group)
    there = sum(1 for _ in _children(key.namespace, name, cluster))
    if there >= needed:
        return None
    return Hold("WaitingForGroups", f"composite group {name} has {there} of {needed} groups it needs")


def _min_groups(group: CompositePodGroup) -> int:
    gang = group.spec.scheduling_policy.gang
    return max(gang.min_group_count, 1) if gang is not None else 1


def _children(namespace: str, name: str, cluster: Cluster) -> Iterator[tuple[str, ObjectMeta]]:
    for kind in ("PodGroup", RESOURCE.kind):
        for item in cluster.all(Item, RESOURCE.group, kind, namespace):
            if getattr(getattr(item, "spec", None), "parent_composite_pod_group_name", "") == name:
                yield kind, item.metadata


def leaves(namespace: str, name: str, cluster: Cluster, depth: int = 0) -> Iterator[str]:
    """The names of all PodGroups below a composite group."""
    for kind, meta in _children(namespace, name, cluster):
        if kind == "PodGroup":
            yield meta.name
        elif depth < _DEPTH:
            yield from leaves(namespace, meta.name, cluster, depth + 1)


def root_of(namespace: str, name: str, cluster: Cluster) -> str:
    """The highest composite group above this one, as far as they exist."""
    for _ in range(_DEPTH):
        found = cluster.find(CompositePodGroup, RESOURCE.group, RESOURCE.kind, namespace, name)
        if found is None or not found.spec.parent_composite_pod_group_name:
            break
        name = found.spec.parent_composite_pod_group_name
    return name
