"""Choosing nodes for one role from its slots: few nodes, close together, leaving the largest holes whole.

The rule at every level is the same: if one domain (one node) holds all that is left, take the tightest that
does; else fill the roomiest ones and do the same with the rest. Ties go to the first in topological order, so
the choice depends on nothing but the slots.
"""

import numpy as np

from muster.plan.forest import Forest
from muster.plan.ledger import Ints


def fullest_first(room: Ints, need: int) -> tuple[Ints, Ints]:
    """Which entries to use, and how much of each, so that as few as possible hold `need`: (indices, amounts).

    `room` must hold `need` in total. Works on a histogram instead of sorting: room per entry is small.
    """
    top = int(room.max())
    if top >= need:
        return tightest(room, need), np.array([need], dtype=np.int64)
    more, rest = divmod(need, top)
    level = (room == top).nonzero()[0]
    if more < len(level) or (more == len(level) and not rest):
        return _from_one_level(room, level, more, rest)
    return _from_the_top(room, need)


def _from_one_level(room: Ints, level: Ints, more: int, rest: int) -> tuple[Ints, Ints]:
    """The roomiest entries alone are enough: the usual case among equal nodes."""
    indices = level[:more]
    amounts = room[indices]
    if not rest:
        return indices, amounts
    left = room.copy()
    left[indices] = 0
    return np.append(indices, tightest(left, rest)), np.append(amounts, rest)


def _from_the_top(room: Ints, need: int) -> tuple[Ints, Ints]:
    capped = np.minimum(room, need)
    histogram = np.bincount(capped)
    from_top = np.cumsum((histogram * np.arange(histogram.size))[::-1])
    above = int(np.searchsorted(from_top, need))  # sizes taken whole, counted from the largest
    size = histogram.size - 1 - above
    filled = int(from_top[above - 1]) if above else 0
    more, rest = divmod(need - filled, size)
    whole = capped > size
    level = np.flatnonzero(capped == size)
    whole[level[:more]] = True
    indices = np.flatnonzero(whole)
    amounts = capped[indices]
    if rest:
        left = np.where(whole, 0, capped)
        last = tightest(left, rest)
        indices = np.append(indices, last)
        amounts = np.append(amounts, rest)
    return indices, amounts


def tightest(room: Ints, need: int) -> Ints:
    """The entry with the least room that still holds `need`."""
    fitting = (room >= need).nonzero()[0]
    best: Ints = fitting[room[fitting].argmin() :][:1]
    return best


def close_together(forest: Forest, slots: Ints, need: int, depth: int = -1, domain: int = 0) -> tuple[Ints, Ints]:
    """Nodes for `need` members inside one domain (depth -1: the whole cluster), which must hold them.

    They lie in the smallest domain that holds them all, the tightest of that level. Nodes come in order.
    """
    if depth < 0 and not forest.levels:
        return in_node_order(*fullest_first(slots, need), 0)
    begin, end = forest.span(depth, domain)
    view = slots[begin:end]
    if view.max() >= need:
        return tightest(view, need) + begin, np.array([need], dtype=np.int64)
    for deeper in range(len(forest.levels) - 1, depth, -1):
        level = forest.levels[deeper]
        first, last = forest.inside(depth, domain, deeper)
        if last - first == 1 and deeper == depth + 1:
            depth, domain = deeper, first
            break
        sums = np.add.reduceat(view, level.starts[first:last] - begin)
        if sums.max() >= need:
            depth, domain = deeper, first + int(tightest(sums, need)[0])
            break
    return _fill(forest, slots, need, depth, domain)


def _fill(forest: Forest, slots: Ints, need: int, depth: int, domain: int) -> tuple[Ints, Ints]:
    """No smaller domain holds it all: fill as few of those just below as possible."""
    begin, end = forest.span(depth, domain)
    view = slots[begin:end]
    if depth + 1 == len(forest.levels):
        return in_node_order(*fullest_first(view, need), begin)
    lower = forest.levels[depth + 1]
    first, last = forest.inside(depth, domain, depth + 1)
    if last - first == 1:
        return _fill(forest, slots, need, depth + 1, first)
    sums = np.add.reduceat(view, lower.starts[first:last] - begin)
    children, amounts = fullest_first(sums, need)
    whole = np.zeros(len(sums), dtype=bool)
    whole[children[amounts == sums[children]]] = True
    nodes = np.flatnonzero(whole[lower.of_node[begin:end] - first] & (view > 0)) + begin
    counts = slots[nodes]
    for child, amount in zip(children.tolist(), amounts.tolist(), strict=True):
        if not whole[child]:
            more, many = close_together(forest, slots, amount, depth + 1, first + child)
            nodes, counts = np.concatenate((nodes, more)), np.concatenate((counts, many))
    return in_node_order(nodes, counts, 0)


def in_node_order(nodes: Ints, counts: Ints, offset: int) -> tuple[Ints, Ints]:
    if len(nodes) > 1:
        order = nodes.argsort()
        nodes, counts = nodes[order], counts[order]
    return (nodes + offset if offset else nodes), counts
