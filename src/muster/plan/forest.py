"""The topology as ranges: nodes lie in an order in which every domain of every level is one run of neighbours.

That order is what makes a domain's room one `add.reduceat`, and close ranks one sort.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from muster.model.node import Node
from muster.model.topology import Topology

Ints = NDArray[np.int64]


class Level:
    """One level: domain d spans nodes `starts[d]` to `ends[d]`, and is `names[d]`."""

    __slots__ = ("ends", "key", "names", "of_node", "starts")

    def __init__(self, key: str, names: list[str], starts: Ints, size: int) -> None:
        self.key = key
        self.names = names
        self.starts = starts
        self.ends = np.append(starts[1:], size)
        self.of_node = np.repeat(np.arange(len(names)), self.ends - starts)


class Forest:
    """Domains of all levels over nodes that are already in topological order."""

    def __init__(self, nodes: Sequence[Node], topology: Topology) -> None:
        self.topology = topology
        self.size = len(nodes)
        self.levels: list[Level] = []
        paths = [path(node, topology.levels) for node in nodes]
        for depth, key in enumerate(topology.levels):
            heads = [i for i, p in enumerate(paths) if i == 0 or p[: depth + 1] != paths[i - 1][: depth + 1]]
            starts = np.array(heads, dtype=np.int64)
            self.levels.append(Level(key, ["/".join(paths[i][: depth + 1]) for i in heads], starts, self.size))

    def span(self, depth: int, domain: int) -> tuple[int, int]:
        """The run of nodes of a domain; depth -1 is the whole cluster."""
        if depth < 0:
            return 0, self.size
        level = self.levels[depth]
        return int(level.starts[domain]), int(level.ends[domain])

    def inside(self, depth: int, domain: int, deeper: int) -> tuple[int, int]:
        """The run of domains of a deeper level that lie in this domain."""
        starts = self.levels[deeper].starts
        if depth < 0:
            return 0, len(starts)
        begin, end = self.span(depth, domain)
        first, last = np.searchsorted(starts, (begin, end)).tolist()
        return first, last

    def depth(self, level: str) -> int:
        """Where a level stands, by its label key or by the last part of that key (`rack`); -1 if there is none."""
        for depth, key in enumerate(self.topology.levels):
            if level in (key, key.rpartition("/")[2]):
                return depth
        return -1


def path(node: Node, levels: Iterable[str]) -> tuple[str, ...]:
    """The node's domain at every level. A node without the label is a domain of its own there, close to nobody."""
    labels = node.labels
    return tuple(labels.get(key) or f"({node.name})" for key in levels)


def in_order(nodes: Iterable[Node], topology: Topology) -> list[Node]:
    return sorted(nodes, key=lambda node: (path(node, topology.levels), natural(node.name)))


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Digits compare as numbers, so that node-10 follows node-9 and neighbours by name are neighbours in rank.

    The name itself comes last: a1 and a01 are two nodes, and their order must not depend on who was seen first.
    """
    parts: list[tuple[str, int]] = []
    digits = word = ""
    for char in name:
        if char.isdecimal():
            digits += char
        else:
            if digits:
                parts.append((word, int(digits)))
                digits = word = ""
            word += char
    parts.append((word, int(digits) if digits else -1))
    return (*parts, (name, 0))
