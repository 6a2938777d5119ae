"""Keeping room for a gang of whose start nobody knows the time.

Where run times are unknown there is no moment to promise. Once such a gang has waited past the age bound, it is
given nodes instead: enough to hold all of it, with the most free room first, are kept from everyone else as they
free up. What is free on them can only grow, and others are chosen only where more is free already, so the gang
starts if jobs end.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from muster.plan.forest import Forest
from muster.plan.room import Future, Part
from muster.plan.shapes import Bools
from muster.plan.state import State
from muster.plan.waiting import Ask, Entry

Floats = NDArray[np.float64]


def hold_for(state: State, entry: Entry) -> Bools:
    """Nodes that would hold every gang of the entry if nothing else ran on them."""
    empty = Future(state.ledger.capacity.copy())
    held = np.zeros(len(state.ledger.nodes), dtype=bool)
    for ask in entry.asks:
        parts = _roomiest(state, ask, empty)
        for part in parts:
            empty.take(part)
            held[part.nodes] = True
    return held


def _roomiest(state: State, ask: Ask, empty: Future) -> list[Part]:
    """The place with the most free room already, of one in each domain where it would fit."""
    free = _free(state, ask)
    places = [_fewest(state, ask, empty, free, domain) for domain in _domains(state.forest, ask.blueprint.required)]
    fitting = [parts for parts in places if parts is not None]
    return max(fitting, key=lambda parts: sum(float(free[part.nodes].sum()) for part in parts), default=[])


def _domains(forest: Forest, depth: int) -> Iterator[slice]:
    if depth < 0:
        yield slice(0, forest.size)
    else:
        yield from (slice(*forest.span(depth, domain)) for domain in range(len(forest.levels[depth].names)))


def _free(state: State, ask: Ask) -> Floats:
    """How much of the gang each node has room for now, as far as one number can say that."""
    free = np.zeros(len(state.ledger.nodes))
    for shape, need in zip(ask.blueprint.shapes, ask.blueprint.needs, strict=True):
        if need:
            free += np.minimum(state.present.slots(shape), need) / need
    return free


def _fewest(state: State, ask: Ask, empty: Future, free: Floats, domain: slice) -> list[Part] | None:
    """Its place on as few of the roomiest nodes of the domain as hold it."""
    order = np.argsort(-free[domain], kind="stable") + domain.start
    low, high, found = 1, len(order) + 1, None
    while low < high:
        middle = (low + high) // 2
        without = np.ones(len(free), dtype=bool)
        without[order[:middle]] = False
        parts = state.asker.seat(empty, ask, ask.blueprint.needs, without, when_empty=True)
        if parts is None:
            low = middle + 1
        else:
            high, found = middle, parts
    return found
