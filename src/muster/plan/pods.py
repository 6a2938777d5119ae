"""Pods one by one, as a scheduler without gangs does it: kept so that the deadlock can be shown and measured.

Pods come in the order their controllers make them: gangs submitted together interleave. Each takes the first
room it finds and keeps it, whole gang or not.
"""

from bisect import insort
from collections.abc import Iterator

import numpy as np

from muster.model.gang import Gang
from muster.plan.actions import Bind, Plan
from muster.plan.holding import Holding, expected_end
from muster.plan.room import Part
from muster.plan.start import seats_of
from muster.plan.state import State
from muster.plan.waiting import Entry

Pod = tuple[float, int, int, int, int, Gang]
"""Submission, number within its gang, arrival, which gang of its group, role, gang. Outlives a change of nodes."""


def admit_pods(state: State, now: float, plan: Plan) -> None:
    for entry in state.fresh:
        for pod in _pods(entry):
            insort(state.pods, pod, key=lambda p: p[:5])
    if state.fresh or state.room_grew:
        full: set[int] = set()
        state.pods = [pod for pod in state.pods if not _bind(state, pod, full, now, plan)]
    state.fresh.clear()
    state.room_grew = state.news = False


def _pods(entry: Entry) -> Iterator[Pod]:
    for index, ask in enumerate(entry.asks):
        roles = [role for role, need in enumerate(ask.blueprint.needs) for _ in range(need)]
        for number, role in enumerate(roles):
            yield (ask.gang.submitted, number, entry.number, index, role, ask.gang)


def _bind(state: State, pod: Pod, full: set[int], now: float, plan: Plan) -> bool:
    *_, role, gang = pod
    shape = state.asker.blueprint(gang).shapes[role]
    if shape.id in full:
        return False
    if not state.present.total(shape):
        full.add(shape.id)
        return False
    holding = state.running.get(gang.uid) or _begin(state, gang, now)
    node = int(np.argmax(state.present.slots(shape) > 0))
    part = Part(role, shape, np.array([node]), np.array([1]), 1)
    state.seat(holding, part)
    whole = not any(holding.missing())
    plan.actions.append(Bind(gang, seats_of(state, [part]), "pod", complete=whole))
    return True


def _begin(state: State, gang: Gang, now: float) -> Holding:
    """The first pod of a gang runs. With it everything submitted together has left the queue."""
    entry = state.queue.entries.get(gang.uid) or state.queue.entries.get(gang.group)
    if entry is not None:
        if entry.kind.hopeless:  # nobody counted on it, and here it is
            state.asker.count(entry, 1)
        state.leave(entry)
    plan = state.asker.blueprint(gang)
    what = plan.plain if gang.group_size == 1 else None
    holding = Holding(gang, now, expected_end(gang, now), [], plan, what)
    state.running[gang.uid] = holding
    return holding
