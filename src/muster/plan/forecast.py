"""When will each waiting gang start, if everything that runs keeps its expected end and nobody else arrives?

Asked of the very function that plans: a copy of the state is led through the future, cycle by cycle.
"""

from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf

from muster.plan.actions import Bind, Plan
from muster.plan.cycle import cycle
from muster.plan.explain import Waiting, explain
from muster.plan.rebuild import build, facts
from muster.plan.state import State

CYCLES = 10_000


def forecast(state: State, now: float, cycles: int = CYCLES) -> dict[str, float]:
    """Expected starts by gang. Gangs of whose start nothing can be known, or not within so many cycles, are absent."""
    copy = build(facts(state), state.policy)
    ends = [(holding.end, uid) for uid, holding in copy.running.items() if holding.end < inf]
    heapify(ends)
    starts: dict[str, float] = {}
    time = now
    for _ in range(cycles):
        plan, _ = cycle(copy, time)
        _note_starts(copy, plan, time, starts, ends)
        wake = copy.wake_at(time)
        following = min(ends[0][0] if ends else inf, inf if wake is None else wake)
        if following == inf or not copy.queue.entries:
            break
        time = max(time, following)
        while ends and ends[0][0] <= time:
            uid = heappop(ends)[1]
            if uid in copy.running:
                copy.finish(uid, time)
    return starts


def expectations(state: State, now: float) -> list[Waiting]:
    """Every gang that waits: why, and when it will start, promised or as forecast; None if nobody can tell."""
    told = explain(state, now)
    starts = forecast(state, now) if any(each.expected is None for each in told) else {}
    return [each if each.expected is not None else replace(each, expected=starts.get(each.uid)) for each in told]


def _note_starts(copy: State, plan: Plan, time: float, starts: dict[str, float], ends: list[tuple[float, str]]) -> None:
    for action in plan.actions:
        if isinstance(action, Bind) and action.why in ("start", "backfill"):
            starts[action.gang.uid] = time
            end = copy.running[action.gang.uid].end
            if end < inf:
                heappush(ends, (end, action.gang.uid))
