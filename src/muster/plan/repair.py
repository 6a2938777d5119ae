"""Repair: a gang left partial by a failure is completed near its survivors, or after its grace stopped whole."""

from muster.plan.actions import Plan, Stop
from muster.plan.asking import wants_of
from muster.plan.company import Company
from muster.plan.holding import Holding
from muster.plan.place import place_in_one_domain
from muster.plan.room import Part
from muster.plan.start import bind_more
from muster.plan.state import State


def repair(state: State, now: float, plan: Plan) -> None:
    """The longest waiting first. It does not mind promises: its own start was one."""
    for holding in sorted((state.running[uid] for uid in state.partial), key=lambda h: (h.partial_since or 0, h.uid)):
        missing = holding.missing()
        if holding.stopping or not any(missing):
            state.partial.discard(holding.uid)
            continue
        if holding.partial_since is None:  # found so: its node vanished, or who bound it did
            holding.partial_since = now
        parts = _near(state, holding, missing)
        if parts is not None:
            holding.partial_since = None
            state.partial.discard(holding.uid)
            bind_more(state, holding, parts, "repair", now, plan)
        elif now - holding.partial_since >= state.policy.repair_grace:
            holding.stopping = True
            state.partial.discard(holding.uid)
            plan.actions.append(Stop(holding.gang, "members are missing and nothing can hold them"))


def _near(state: State, holding: Holding, missing: list[int]) -> list[Part] | None:
    """The smallest domain around a survivor that holds what is missing; anywhere, unless one domain is required."""
    plan = holding.blueprint
    wants = wants_of(holding.gang.roles, plan.shapes, missing)
    company = Company(state.tenants, holding.gang.namespace)
    survivors = holding.nodes()
    if len(survivors):
        for depth in range(len(state.forest.levels) - 1, -1, -1):
            level = state.forest.levels[depth]
            here = level.of_node == level.of_node[survivors[0]]
            found = place_in_one_domain(state.present, state.forest, wants, depth, company, here[level.starts], None)
            if found is not None:
                return found[0]
            if depth == plan.required:
                return None
    return state.asker.seat(state.present, holding.ask, missing)
