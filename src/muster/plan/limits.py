"""What placement rules come to: masks, caps and quotas over nodes, so that a role stays one bulk decision."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.plan.ledger import Ints

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Quota:
    """Topology spread over one label: domain of each node (-1: none), matching pods there now, and the skew."""

    domain: Ints
    present: Ints  # per domain
    eligible: Bools  # per domain: whether its emptiness counts
    max_skew: int
    counts_itself: bool  # whether members of the role match the selector, and so fill their own quota
    min_domains: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """How pods that already run, and the members among themselves, narrow a role's choice."""

    allowed: Bools | None = None  # nodes ruled out by (anti-)affinity to pods that run there
    per_node: Ints | None = None  # most members a node may get (host ports, anti-affinity among members)
    apart: tuple[Ints, ...] = ()  # domain of each node: at most one member in each
    together: tuple[Ints, ...] = ()  # domain of each node: all members in one and the same
    quotas: tuple[Quota, ...] = ()

    @property
    def simple(self) -> bool:
        """Nothing but masks and caps per node."""
        return not (self.apart or self.together or self.quotas)


UNLIMITED = Limits()
