"""Pods one by one, as a scheduler without gangs does it: kept so that the deadlock can be shown and measured.

Pods come in the order their controllers make them: gangs submitted together interleave. Each takes the first
room it finds and keeps it, whole gang or not.
"""

from bisect import insort
from collections.abc import Iterator

import numpy as np

from muster.plan.actions import Bind, Plan
from muster.plan.holding import Holding, expected_end
from muster.plan.room import Part
from muster.plan.start import seats_of
from muster.plan.state import State
from muster.plan.waiting import Entry

Pod = tuple[float, int, int, int, Entry]
"""Submission, number within its gang, arrival of the gang, role, gang."""


def admit_pods(state: State, now: float, plan: Plan) -> None:
    for entry in state.fresh:
        for pod in _pods(entry):
            insort(state.pods, pod, key=lambda p: p[:4])
    if state.fresh or state.room_grew:
        full: set[int] = set()
        state.pods = [pod for pod in state.pods if not _bind(state, pod, full, now, plan)]
    state.fresh.clear()
    state.room_grew = state.news = False


def _pods(entry: Entry) -> Iterator[Pod]:
    number = 0
    ask = entry.asks[0]
    for role, need in enumerate(ask.blueprint.needs):
        for _ in range(need):
            yield (ask.gang.submitted, number, entry.number, role, entry)
            number += 1


def _bind(state: State, pod: Pod, full: set[int], now: float, plan: Plan) -> bool:
    *_, role, entry = pod
    ask = entry.asks[0]
    shape = ask.blueprint.shapes[role]
    if shape.id in full:
        return False
    if not state.present.total(shape):
        full.add(shape.id)
        return False
    holding = state.running.get(entry.uid)
    if holding is None:
        state.leave(entry)
        holding = state.running[entry.uid] = Holding(
            ask.gang, now, expected_end(ask.gang, now), [], ask.blueprint, ask.blueprint.plain
        )
    node = int(np.argmax(state.present.slots(shape) > 0))
    part = Part(role, shape, np.array([node]), np.array([1]), 1)
    state.seat(holding, part)
    whole = not any(holding.missing())
    plan.actions.append(Bind(ask.gang, seats_of(state, [part]), "pod", complete=whole))
    return True
