"""Growing: members above the quorum, where there is room that nobody waiting was promised."""

from muster.plan.actions import Plan
from muster.plan.asking import wants_of
from muster.plan.company import Company
from muster.plan.counted import Counted
from muster.plan.holding import Holding
from muster.plan.place import Scope, place
from muster.plan.start import bind_more
from muster.plan.state import State


def grow(state: State, now: float, plan: Plan) -> None:
    """In order of start, into room that was promised to nobody."""
    for holding in sorted((state.running[uid] for uid in state.bending), key=lambda h: (h.started, h.uid)):
        if not holding.stopping and holding.uid not in state.partial and holding.parts:
            _give(state, holding, now, plan)


def _give(state: State, holding: Holding, now: float, plan: Plan) -> None:
    done = holding.succeeded or [0] * len(holding.gang.roles)
    for index, role in enumerate(holding.gang.roles):
        room = role.most - holding.held(index) - done[index]
        step = role.parallelism.tp * role.parallelism.pp if role.parallelism else 1
        room -= room % step
        members = room
        while members >= step:
            if _grown(state, holding, index, members, now, plan):
                room -= members
                members = min(members, room)
            else:
                members = members // 2 - members // 2 % step


def _grown(state: State, holding: Holding, role: int, members: int, now: float, plan: Plan) -> bool:
    """Give it so many more members, all or none."""
    without = state.held
    if state.promises:
        future = state.future(now)
        if isinstance(future, Counted):
            if future.profile.least(now, holding.end) < members:
                return False
        else:
            kept = future.kept_until(holding.end)
            without = kept if without is None else without if kept is None else without | kept
    needs = [members if index == role else 0 for index in range(len(holding.gang.roles))]
    wants = wants_of(holding.gang.roles, holding.blueprint.shapes, needs)
    company = Company(state.tenants, holding.gang.namespace)
    parts = place(state.present, state.forest, wants, company, Scope(*holding.domain, without=without))
    if parts is None:
        return False
    bind_more(state, holding, parts, "grow", now, plan)
    return True
