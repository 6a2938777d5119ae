"""Who stands below which owner, so that an owner's news reaches its own pods and group objects, and those alone."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from muster.dialects.cluster import Cluster, Name, lineage
from muster.dialects.leaderworkerset import KIND as LEADER_WORKER_SET
from muster.dialects.leaderworkerset import NAME as SET_NAME
from muster.objects.owners import ObjectMeta

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class Lines(Generic[T]):
    """Things by the names of all that stand above them."""

    heirs: dict[Name, set[T]] = field(default_factory=lambda: defaultdict(set))
    above: dict[T, tuple[Name, ...]] = field(default_factory=dict)

    def put(self, item: T, names: Iterable[Name]) -> None:
        """From now on it stands below these, and no others."""
        line = tuple(names)
        if self.above.get(item) == line:
            return
        self.drop(item)
        if line:
            self.above[item] = line
        for name in line:
            self.heirs[name].add(item)

    def drop(self, item: T) -> None:
        for name in self.above.pop(item, ()):
            self.heirs[name].discard(item)
            if not self.heirs[name]:
                del self.heirs[name]

    def below(self, name: Name) -> list[T]:
        return list(self.heirs.get(name, ()))


def line_of(meta: ObjectMeta, cluster: Cluster) -> tuple[Name, ...]:
    """All that is known to stand above an object, and the first that is not known yet."""
    names = tuple(ref.full_name for ref, _ in lineage(meta, cluster))
    if SET_NAME in meta.labels:  # its pods are controlled by pods, which no view of owners holds
        resource = LEADER_WORKER_SET.served.resource
        names += ((resource.group, resource.kind, meta.namespace, meta.labels[SET_NAME]),)
    return names
