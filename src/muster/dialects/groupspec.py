"""Fields that native PodGroups, composite groups and a Job's own `spec.scheduling` have in common."""

import msgspec

from muster.dialects.cluster import Cluster
from muster.dialects.limits import class_value
from muster.objects.decode import Decoded


class Gang(Decoded, frozen=True):
    """A quorum of pods, or of groups."""

    min_count: int = 0
    min_group_count: int = 0


class TopologyKey(Decoded, frozen=True):
    """A node label; all members share its value."""

    key: str = ""


class Constraints(Decoded, frozen=True):
    """At most one topology."""

    topology: list[TopologyKey] = []

    @property
    def key(self) -> str:
        """The label, or nothing."""
        return self.topology[0].key if self.topology else ""


class Mode(Decoded, frozen=True):
    """Present or not."""


class Disruption(Decoded, frozen=True):
    """Whether members are victims one by one or all together."""

    single: Mode | None = None
    all: Mode | None = msgspec.field(default=None)


def priority_in(value: int | None, class_name: str, cluster: Cluster) -> int | None:
    """The number admission wrote, else what the class is worth; None where neither was said."""
    if value is not None:
        return value
    return class_value(class_name, cluster) if class_name else None
