"""What dialects may look at: decoded objects, and which pods and owners belong to which gang.

The view is filled by whoever watches a cluster and only read here. Which gang a pod or an owner belongs to
is answered by `membership`; keeping the index by those answers is the watcher's part.
"""

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeVar

from muster.objects.decode import Decoded
from muster.objects.owners import ObjectMeta, OwnerReference, controller_of
from muster.objects.pods import Pod


class Item(Decoded, frozen=True):
    """Any object: what all have in common."""

    metadata: ObjectMeta = ObjectMeta()


T = TypeVar("T", bound=Decoded)


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A kind of object as the API serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """One object, found again by name; the uid tells it from an earlier one of that name."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def full_name(self) -> tuple[str, str, str, str]:
        """The reference without the uid."""
        return self.group, self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One gang: who spells it, and its name there."""

    dialect: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.dialect}:{self.namespace}/{self.name}"


Objects = Mapping[tuple[str, str], Mapping[tuple[str, str], Decoded]]
"""By (API group, kind), then by (namespace, name); cluster-wide objects have an empty namespace."""


Name = tuple[str, str, str, str]
"""API group, kind, namespace and name of an object."""


@dataclass(slots=True)
class Cluster:
    """A read-only view. `pods`, `owners` and `grouped` hold what `membership` said of pods, owners and groups."""

    objects: Objects = field(default_factory=dict)
    pods: Mapping[Key, Collection[Pod]] = field(default_factory=dict)
    owners: Mapping[Key, Collection[Ref]] = field(default_factory=dict)
    grouped: Mapping[Name, Collection[Key]] = field(default_factory=dict)  # by owner: group objects made for it
    with_status: AbstractSet[tuple[str, str]] = frozenset()  # custom kinds found to have a status subresource

    def find(self, kind: type[T], group: str, name: str, namespace: str, object_name: str) -> T | None:
        """The object of that name, if it is known and of the decoded type."""
        found = self.objects.get((group, name), {}).get((namespace, object_name))
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T], group: str, name: str, namespace: str) -> Iterator[T]:
        """Every known object of a kind in a namespace, by name."""
        items = self.objects.get((group, name), {})
        for (where, _), found in sorted(items.items(), key=lambda item: item[0]):
            if where == namespace and isinstance(found, kind):
                yield found

    def deref(self, ref: Ref) -> Decoded | None:
        """The object a reference means, unless it is gone or another took its name."""
        found = self.objects.get((ref.group, ref.kind), {}).get((ref.namespace, ref.name))
        if found is None or (ref.uid and meta_of(found).uid not in {"", ref.uid}):
            return None
        return found

    def namespaces(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Names and labels of all namespaces."""
        for item in self.all(Item, "", "Namespace", ""):
            yield item.metadata.name, item.metadata.labels


def meta_of(item: Decoded) -> ObjectMeta:
    """The metadata of any decoded object."""
    meta = getattr(item, "metadata", None)
    return meta if isinstance(meta, ObjectMeta) else ObjectMeta()


def ref_of(owner: OwnerReference, namespace: str) -> Ref:
    """An owner reference as a reference; owners live in the namespace of what they own."""
    return Ref(owner.group, owner.kind, namespace, owner.name, owner.uid)


def lineage(meta: ObjectMeta, cluster: Cluster) -> tuple[tuple[Ref, Decoded | None], ...]:
    """The controllers of an object, nearest first, up to one that nobody controls or nobody knows."""
    found: list[tuple[Ref, Decoded | None]] = []
    owner = controller_of(meta)
    while owner is not None and len(found) < 8:  # a cycle cannot be, a bound costs nothing
        ref = ref_of(owner, meta.namespace)
        item = cluster.deref(ref)
        found.append((ref, item))
        owner = controller_of(meta_of(item)) if item is not None else None
    return tuple(found)
