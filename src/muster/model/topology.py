"""Which nodes are close to each other, and what a gang asks of that closeness."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.model.resources import Resources


@dataclass(frozen=True, slots=True)
class Topology:
    """The levels of the cluster, widest first, each named by the node label that tells a node's domain there.

    Domains of a level nest in those of the level before it: two racks of the same name in two zones are two
    racks. `resources` are countable things a domain has and a node does not, by level and by domain name.
    """

    levels: tuple[str, ...] = ()
    resources: Mapping[tuple[str, str], Resources] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Closeness:
    """Level names as in `Topology.levels`. Required: all members in one domain. Preferred: if it costs no waiting."""

    required: str = ""
    preferred: str = ""
    resources: tuple[tuple[str, int], ...] = ()  # taken from the domain that holds the gang


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How the ranks of a role talk: tensor-parallel peers within one node, pipeline stages within one domain.

    Rank = (d * pp + p) * tp + t, the order in which training frameworks lay out their groups.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
