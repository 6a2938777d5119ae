"""Why a gang waits, in words its owner can act on: what it needs, what lacks, until when, and who is in the way."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from muster.model.resources import Resources
from muster.plan.shapes import Shape
from muster.plan.waiting import Ask, Entry

if TYPE_CHECKING:
    from muster.plan.holding import Holding
    from muster.plan.state import State

EPOCH_TIMES = 1e8
"""Below this a time is a simulator's, counted from the start of a trace, and not a date."""

PIECES = {"cpu": (1000, "CPU"), "memory": (1 << 30, "GiB memory"), "nvidia.com/gpu": (1, "GPU")}


@dataclass(frozen=True, slots=True)
class Waiting:
    """One gang that has not started: why, and when it is expected to (None: nobody can tell)."""

    uid: str
    reason: str
    expected: float | None


def explain(state: "State", now: float) -> list[Waiting]:
    """Every gang that waits. Gangs of a kind share the work of finding out."""
    found: dict[int, str] = {}
    waiting: list[Waiting] = []
    for entry in state.queue.entries.values():
        reason = found.get(id(entry.kind)) if entry.promised is None and not entry.kind.hopeless else None
        if reason is None:
            reason = why(state, entry, now)
            if entry.promised is None:
                found[id(entry.kind)] = reason
        waiting.extend(Waiting(ask.gang.uid, reason, entry.promised) for ask in entry.asks)
    for group, gangs in state.groups.items():
        lacking = gangs[0].group_size - len(gangs) if gangs else 0
        reason = f"waits for {lacking} more of the {lacking + len(gangs)} gangs of group {group}"
        waiting.extend(Waiting(gang.uid, reason, None) for gang in gangs)
    return waiting


def why(state: "State", entry: Entry, now: float) -> str:
    needs = needs_of(state, entry)
    if entry.kind.hopeless:
        return entry.kind.hopeless
    if state.asker.place(state.present, entry, None) is None:
        return f"{needs}; {_lacking(state, entry, now)}"
    return f"{needs}; there is room, but {_in_the_way(state, entry, now)}"


def why_never(state: "State", entry: Entry) -> str:
    """What even the empty cluster lacks."""
    for ask in entry.asks:
        if ask.blueprint.unknown_level:
            return f"{needs_of(state, entry)} in one {ask.blueprint.unknown_level}; no such topology level is known"
        for role, shape, need in zip(ask.gang.roles, ask.blueprint.shapes, ask.blueprint.needs, strict=True):
            missing = sorted(
                name for name in role.request if role.request[name] > 0 and name not in state.ledger.resources
            )
            if missing:
                return f"{needs_of(state, entry)}; no node has {', '.join(missing)}"
            if shape.allowed is not None and not shape.allowed.any():
                return (
                    f"{needs_of(state, entry)}; no node is ready, untainted and labelled as role {role.name} requires"
                )
            if shape.most < need:
                nodes = len(state.ledger.nodes) if shape.allowed is None else int(shape.allowed.sum())
                return f"{needs_of(state, entry)}; even empty, the {_nodes(nodes)} it may use would hold {shape.most}"
    where = "in one domain " if any(ask.blueprint.required >= 0 for ask in entry.asks) else ""
    return f"{needs_of(state, entry)}; the empty cluster cannot hold them {where}under their placement rules"


def _nodes(number: int) -> str:
    return "node" if number == 1 else f"{number} nodes"


def needs_of(state: "State", entry: Entry) -> str:
    return "needs " + " and ".join(_ask(state, ask) for ask in entry.asks)


def _ask(state: "State", ask: Ask) -> str:
    parts = [
        f"{need} × {amounts(role.request)}"
        for role, need in zip(ask.gang.roles, ask.blueprint.needs, strict=True)
        if need
    ]
    plan = ask.blueprint
    level = f" in one {_short(state.topology.levels[plan.required])}" if plan.required >= 0 else ""
    return " + ".join(parts) + level


def amounts(request: Resources) -> str:
    """GPUs alone where there are any: they are what is scarce. Else everything."""
    wanted = {name: amount for name, amount in request.items() if amount and name != "pods"}
    scarce = {name: amount for name, amount in wanted.items() if "/" in name} or wanted
    return " + ".join(_amount(name, amount) for name, amount in scarce.items()) or "nothing"


def _amount(name: str, amount: int) -> str:
    size, word = PIECES.get(name, (1, name))
    number = f"{amount / size:.10g}"
    return f"{number} {word}{'s' if word == 'GPU' and number != '1' else ''}"


def _short(level: str) -> str:
    return level.rpartition("/")[2]


def _lacking(state: "State", entry: Entry, now: float) -> str:
    """How far the best place is from holding it, and whose end closes the gap."""
    ask = entry.asks[0]
    plan = ask.blueprint
    worst = min(range(len(plan.shapes)), key=lambda i: state.present.total(plan.shapes[i]) - plan.needs[i])
    shape, need = plan.shapes[worst], plan.needs[worst]
    where, room = _best_place(state, shape, plan.required)
    if need > room:
        text = f"{where} lacks room for {need - room}"
    else:
        text = f"{where} has room for {room}, but not as its placement rules ask"
    last = _ends_by(state, entry.promised) if entry.promised is not None else None
    if entry.promised is None:
        return text
    when = clock(entry.promised, now)
    return f"{text} until about {when}" + (f", when {last.gang.name or last.uid} ends" if last is not None else "")


def _best_place(state: "State", shape: Shape, depth: int) -> tuple[str, int]:
    slots = state.present.slots(shape)
    if depth < 0:
        return "the cluster", int(slots.sum())
    level = state.forest.levels[depth]
    sums = np.add.reduceat(slots, level.starts)
    best = int(np.argmax(sums))
    return level.names[best].rpartition("/")[2], int(sums[best])


def _ends_by(state: "State", time: float) -> "Holding | None":
    """The gang whose expected end makes the promised time."""
    ending = [h for h in state.running.values() if h.end <= time]
    return max(ending, key=lambda h: (h.end, h.uid), default=None)


def _in_the_way(state: "State", entry: Entry, now: float) -> str:
    if state.held is not None and state.asker.place(state.present, entry, state.held) is None:
        return "it is kept for a gang that has waited longest"
    before = [other for other in state.promises.values() if other is not entry]
    if not state.policy.passing:
        head = min(state.queue.entries.values(), key=lambda e: e.rank)
        return f"{_name(head)} is before it and nobody may pass"
    first = min(before, key=lambda e: (e.promised or inf, e.rank), default=None)
    if first is None:
        return "it has only just become free"
    length = "a run of unknown length" if entry.length == inf else f"its run of {_span(entry.length)}"
    return f"{length} would delay {_name(first)}, promised for about {clock(first.promised or now, now)}"


def _name(entry: Entry) -> str:
    return entry.gang.name or entry.uid


def _span(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds:g} s"


def clock(time: float, now: float) -> str:
    """The time of day (UTC), with the date where it is not today; for a trace, seconds from its start."""
    if time < EPOCH_TIMES:
        return f"second {time:.0f}"
    moment, today = datetime.fromtimestamp(time, UTC), datetime.fromtimestamp(now, UTC)
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")
