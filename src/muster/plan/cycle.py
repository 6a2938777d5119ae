"""One planning cycle: from the state and the time to a plan. Least disruptive first.

Nothing here reads a clock or does I/O. The state that comes back already counts the plan as done; if an action
fails, the caller says so by an event, and the next cycle plans from that.
"""

from muster.plan.actions import Plan
from muster.plan.admit import admit
from muster.plan.grow import grow
from muster.plan.pods import admit_pods
from muster.plan.repair import repair
from muster.plan.state import State


def cycle(state: State, now: float) -> tuple[Plan, State]:
    plan = Plan()
    if state.policy.whole:
        if state.partial:
            repair(state, now, plan)
        admit(state, now, plan)
        if state.bending:
            grow(state, now, plan)
    else:
        admit_pods(state, now, plan)
    return plan, state
