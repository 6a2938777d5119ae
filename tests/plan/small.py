"""Clusters and gangs of a few words, for tests that tell one story each."""

from collections.abc import Mapping
from typing import Any

from muster.model.gang import Gang, Role, Running, Seats
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.actions import Bind, Plan

GPU = "nvidia.com/gpu"
RACKS = Topology(("zone", "rack"))


def node(name: str, gpus: int = 4, **labels: str) -> Node:
    return Node(name, {GPU: gpus}, labels)


def racks(*sizes: tuple[int, ...]) -> list[Node]:
    """One rack per argument, with nodes of these sizes, two racks to a zone: rack r0 holds r0-0, r0-1…"""
    return [
        node(f"r{r}-{i}", size, zone=f"z{r // 2}", rack=f"r{r}")
        for r, rack in enumerate(sizes)
        for i, size in enumerate(rack)
    ]


def gang(uid: str, members: int, gpus: int = 1, *, most: int = 0, submitted: float = 0.0, **more: Any) -> Gang:
    """One role of so many members."""
    role = Role("worker", members, {GPU: gpus}, most)
    return Gang(uid, (role,), submitted, uid, **{"walltime": 100.0, **more})


def running(one: Gang, started: float, *where: Mapping[str, int]) -> Running:
    """The members of each role by node."""
    seats = [Seats(role, tuple(held), tuple(held.values())) for role, held in enumerate(where) if held]
    return Running(one, started, tuple(seats))


def binds(plan: Plan) -> dict[str, tuple[str, dict[str, int]]]:
    """Why and where each gang got members."""
    return {bind.gang.uid: (bind.why, held(bind)) for bind in plan.binds}


def held(bind: Bind) -> dict[str, int]:
    return {name: count for seats in bind.seats for name, count in zip(seats.nodes, seats.counts, strict=True)}


def started(plan: Plan) -> list[str]:
    return [bind.gang.uid for bind in plan.binds]
