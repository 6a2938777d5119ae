"""Keeping room for a gang of whose start nobody knows the time.

Where run times are unknown there is no moment to promise. Once such a gang has waited past the age bound, it is
given nodes instead: those that could hold it, with the most free room first, are kept from everyone else as they
free up. What is free on them can only grow, so the gang starts if jobs end.
"""

import numpy as np

from muster.plan.forest import Forest
from muster.plan.ledger import Ints
from muster.plan.shapes import Bools
from muster.plan.state import State
from muster.plan.waiting import Entry


def hold_for(state: State, entry: Entry) -> Bools:
    held = np.zeros(len(state.ledger.nodes), dtype=bool)
    for ask in entry.asks:
        begin, end = 0, len(held)
        for shape, need in zip(ask.blueprint.shapes, ask.blueprint.needs, strict=True):
            if need <= 0:
                continue
            whole = shape.slots_in(state.ledger.capacity)
            free = state.present.slots(shape)
            if ask.blueprint.required >= 0:
                begin, end = _best_domain(state.forest, ask.blueprint.required, whole, free, need)
            held[begin:end] |= _roomiest(whole[begin:end], free[begin:end], need)
    return held


def _best_domain(forest: Forest, depth: int, whole: Ints, free: Ints, need: int) -> tuple[int, int]:
    """Of the domains that could hold it, the one with the most room already."""
    starts = forest.levels[depth].starts
    could = np.add.reduceat(whole, starts) >= need
    domain = int(np.argmax(np.where(could, np.add.reduceat(free, starts), -1)))
    return forest.span(depth, domain)


def _roomiest(whole: Ints, free: Ints, need: int) -> Bools:
    order = np.lexsort((-whole, -free))
    enough = int(np.searchsorted(np.cumsum(whole[order]), need)) + 1
    chosen = np.zeros(len(whole), dtype=bool)
    chosen[order[:enough]] = True
    return chosen
