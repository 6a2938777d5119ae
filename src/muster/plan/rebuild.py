"""A state taken apart into the facts it rests on, and built again from them: what a new leader does."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.model.gang import Gang, Reservation, Running
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.holding import Holding
from muster.plan.policy import Policy
from muster.plan.start import seats_of
from muster.plan.state import State


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the API holds that planning depends on."""

    nodes: tuple[Node, ...]
    topology: Topology
    running: tuple[Running, ...]
    waiting: tuple[Gang, ...]


def facts(state: State) -> Facts:
    running = tuple(_record(state, holding) for holding in state.running.values())
    waiting = [
        replace(ask.gang, promised=None if entry.promised is None else Reservation(entry.promised, since=entry.since))
        for entry in sorted(state.queue.entries.values(), key=lambda e: e.number)
        for ask in entry.asks
    ]
    waiting += [gang for gangs in state.groups.values() for gang in gangs]
    return Facts(tuple(state.ledger.nodes), state.topology, running, tuple(waiting))


def _record(state: State, holding: Holding) -> Running:
    seats = seats_of(state, holding.parts)
    return Running(holding.gang, holding.started, seats, tuple(holding.succeeded), holding.partial_since)


def build(known: Facts, policy: Policy) -> State:
    state = State(known.nodes, known.topology, policy)
    for running in known.running:
        state.adopt(running)
    for gang in in_order_of_arrival(known.waiting):
        state.submit(gang)
    return state


def in_order_of_arrival(gangs: Iterable[Gang]) -> list[Gang]:
    return sorted(gangs, key=lambda gang: gang.submitted)
