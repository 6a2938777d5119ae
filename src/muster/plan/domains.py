"""Things a domain has and a node does not: reduction trees of a switch, power of a rack. Counted per domain."""

import numpy as np

from muster.model.gang import Gang
from muster.plan.forest import Forest
from muster.plan.holding import NOWHERE, Holding
from muster.plan.ledger import Ints
from muster.plan.shapes import Bools
from muster.plan.waiting import Ask

Table = dict[tuple[int, str], Ints]
"""Free amounts per domain, by depth of the level and resource."""


class DomainLedger:
    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.free: Table = {}
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

    def take(self, holding: Holding) -> None:
        """A gang that has its nodes now lives in their domain, and takes what it needs of it."""
        depth, nodes = holding.blueprint.required, holding.nodes()
        if depth >= 0 and len(nodes) and holding.domain == NOWHERE:
            holding.domain = (depth, int(self.forest.levels[depth].of_node[nodes[0]]))
            self._charge(holding, 1)

    def give(self, holding: Holding) -> None:
        """It holds no node any more; should it start again, it may do so elsewhere."""
        self._charge(holding, -1)
        holding.domain = NOWHERE

    def _charge(self, holding: Holding, sign: int) -> None:
        depth, domain = holding.domain
        if depth >= 0:
            self.charge(self.free, holding.gang, depth, domain, sign)

    @staticmethod
    def charge(table: Table, gang: Gang, depth: int, domain: int, sign: int) -> None:
        for resource, amount in gang.closeness.resources:
            if (depth, resource) in table:
                table[depth, resource][domain] -= sign * amount

    def try_out(self, ask: Ask, node: int, sign: int, when_empty: bool) -> None:
        """Count in, or out again, a gang that was seated in a trial."""
        depth = ask.blueprint.required
        if depth >= 0:
            domain = int(self.forest.levels[depth].of_node[node])
            self.charge(self.capacity if when_empty else self.free, ask.gang, depth, domain, sign)
