"""Things a domain has and a node does not: reduction trees of a switch, power of a rack. Counted per domain."""

import numpy as np

from muster.model.gang import Gang
from muster.plan.forest import Forest
from muster.plan.holding import Holding
from muster.plan.ledger import Ints
from muster.plan.shapes import Bools


class DomainLedger:
    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.free: dict[tuple[int, str], Ints] = {}
        for (level, domain), resources in forest.topology.resources.items():
            depth = forest.depth(level)
            if depth < 0:
                continue
            names = forest.levels[depth].names
            for resource, amount in resources.items():
                column = self.free.setdefault((depth, resource), np.zeros(len(names), dtype=np.int64))
                for index, name in enumerate(names):
                    if domain in (name, name.rpartition("/")[2]):
                        column[index] = amount
        self.capacity = {key: column.copy() for key, column in self.free.items()}

    def open(self, gang: Gang, depth: int, when_empty: bool = False) -> Bools | None:
        """Which domains of the level have what the gang takes from its domain; None where it takes nothing."""
        wanted = gang.closeness.resources
        if not wanted or depth < 0:
            return None
        table = self.capacity if when_empty else self.free
        domains = len(self.forest.levels[depth].names)
        nothing = np.zeros(domains, dtype=np.int64)
        fits = np.ones(domains, dtype=bool)
        for resource, amount in wanted:
            fits &= table.get((depth, resource), nothing) >= amount
        return fits

    def take(self, holding: Holding, sign: int = 1) -> None:
        depth, domain = holding.domain
        if depth >= 0:
            for resource, amount in holding.gang.closeness.resources:
                self.free[depth, resource][domain] -= sign * amount

    def give(self, holding: Holding) -> None:
        self.take(holding, -1)

    def adopt(self, holding: Holding) -> None:
        """Find the domain a gang lives in from its nodes, and charge it."""
        required = holding.gang.closeness.required
        nodes = holding.nodes()
        depth = self.forest.depth(required)
        if depth >= 0 and len(nodes):
            holding.domain = (depth, int(self.forest.levels[depth].of_node[nodes[0]]))
            if holding.gang.closeness.resources:
                self.take(holding)
