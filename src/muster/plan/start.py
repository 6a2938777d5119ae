"""Starting a gang: it leaves the queue, takes its nodes in the ledger, and the plan says so."""

from collections.abc import Sequence

from muster.model.gang import Gang, Seats
from muster.plan.actions import Bind, Plan
from muster.plan.holding import Holding, expected_end
from muster.plan.room import Part
from muster.plan.state import State
from muster.plan.waiting import Entry


def start(state: State, entry: Entry, seating: Sequence[Sequence[Part]], now: float, plan: Plan) -> None:
    passed = bool(state.promises) and any(entry.rank > other.rank for other in state.promises.values())
    state.leave(entry)
    actions = plan.actions
    for ask, parts in zip(entry.asks, seating, strict=True):
        gang = ask.gang
        blueprint = ask.blueprint
        what = blueprint.plain if len(entry.asks) == 1 else None
        holding = Holding(gang, now, expected_end(gang, now), [], blueprint, what)
        for part in parts:
            state.seat(holding, part)
        if blueprint.required >= 0:
            state.domains.take(holding)
        state.running[gang.uid] = holding
        if blueprint.bends:
            state.track(holding)
        if state.outlook is not None:
            state.outlook.started(holding, blueprint.members, now)
        actions.append(Bind(gang, seats_of(state, parts), "backfill" if passed else "start"))


def seats_of(state: State, parts: Sequence[Part]) -> tuple[Seats, ...]:
    names = state.ledger.names
    return tuple(
        [
            Seats(part.role, tuple([names[n] for n in part.nodes.tolist()]), tuple(part.counts.tolist()))
            for part in parts
        ]
    )


def bind_more(state: State, holding: Holding, parts: list[Part], why: str, now: float, plan: Plan) -> None:
    """Members for a gang that runs already."""
    gang: Gang = holding.gang
    for part in parts:
        state.seat(holding, part)
        if state.outlook is not None:
            state.outlook.started(holding, part.members, now)
    state.domains.take(holding)
    plan.actions.append(Bind(gang, seats_of(state, parts), why, complete=not any(holding.missing())))
    state.track(holding)
