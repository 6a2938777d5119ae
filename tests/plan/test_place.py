"""Placing gangs whole: sound always, complete for one role, close together, and the room left as it was."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.topology import Closeness, Parallelism
from muster.plan.forest import path
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, node, racks

CLUSTERS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4).map(
    lambda sizes: racks(*sizes)
)
CLOSE = st.sampled_from([Closeness(), Closeness(required="rack"), Closeness(required="zone"), Closeness("", "rack")])
LAYOUTS = st.sampled_from([None, Parallelism(2), Parallelism(1, 2), Parallelism(2, 2), Parallelism(4)])

Seating = dict[int, dict[str, int]]
"""By role, members on each node."""


def seat(nodes: list[Node], gang: Gang) -> Seating | None:
    """Where the gang would start in the empty cluster; None if it waits."""
    state = State(nodes, RACKS)
    ask = state.asker.entry((gang,), 1).asks[0]
    before = state.ledger.free.copy()
    parts = state.asker.seat(state.present, ask, ask.blueprint.needs)
    assert (state.ledger.free == before).all(), "the room is not as it was found"
    assert all((state.present.slots(s) == s.slots_in(before)).all() for s in state.shapes.all)
    if parts is None:
        return None
    assert all(part.members == part.counts.sum() for part in parts)
    return {p.role: {state.ledger.names[n]: int(c) for n, c in zip(p.nodes, p.counts, strict=True)} for p in parts}


def check(nodes: list[Node], gang: Gang, seating: Seating) -> None:
    by_name = {each.name: each for each in nodes}
    used = dict.fromkeys(by_name, 0)
    for index, role in enumerate(gang.roles):
        assert sum(seating[index].values()) == role.min
        for name, count in seating[index].items():
            used[name] += count * role.request[GPU]
            assert count % (role.parallelism.tp if role.parallelism else 1) == 0
    assert all(used[name] <= each.capacity[GPU] for name, each in by_name.items())
    if gang.closeness.required:
        depth = RACKS.levels.index(gang.closeness.required) + 1
        assert len({path(by_name[n], RACKS.levels)[:depth] for s in seating.values() for n in s}) == 1


def domains(nodes: list[Node], level: str) -> list[list[Node]]:
    if not level:
        return [nodes]
    return [[each for each in nodes if each.labels[level] == name] for name in sorted({n.labels[level] for n in nodes})]


@settings(max_examples=300)
@given(CLUSTERS, CLOSE, LAYOUTS, st.integers(1, 10), st.integers(1, 2))
def test_one_role_finds_a_place_whenever_there_is_one(
    nodes: list[Node], closeness: Closeness, layout: Parallelism | None, blocks: int, gpus: int
) -> None:
    tp = layout.tp if layout else 1
    role = Role("worker", blocks * tp, {GPU: gpus}, parallelism=layout)
    gang = Gang("g", (role,), 0.0, closeness=closeness)
    exists = any(
        sum(each.capacity[GPU] // gpus // tp for each in domain) >= blocks
        for domain in domains(nodes, closeness.required)
    )
    seating = seat(nodes, gang)
    assert (seating is not None) == exists
    if seating is not None:
        check(nodes, gang, seating)


@pytest.mark.parametrize("decoys", [63, 64, 200])
def test_one_role_finds_the_only_rack_whatever_lies_before_it(decoys: int) -> None:
    """Racks that look just large enough, and hold no two peers on one node."""
    nodes = racks(*[(1, 1)] * decoys, (3,))
    role = Role("worker", 2, {GPU: 1}, parallelism=Parallelism(2))
    assert seat(nodes, Gang("g", (role,), 0.0, closeness=Closeness(required="rack"))) == {0: {f"r{decoys}-0": 2}}


def fits_by_hand(nodes: list[Node], roles: tuple[Role, ...]) -> bool:
    """Whether two roles fit these nodes together, trying every way to seat the first."""
    first, second = roles
    sizes = [each.capacity[GPU] for each in nodes]
    for ways in product(*[range(size // first.request[GPU] + 1) for size in sizes]):
        if sum(ways) == first.min:
            left = [s - w * first.request[GPU] for s, w in zip(sizes, ways, strict=True)]
            if sum(each // second.request[GPU] for each in left) >= second.min:
                return True
    return False


@settings(max_examples=200)
@given(CLUSTERS, CLOSE, st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 3))
def test_several_roles_are_seated_soundly(
    nodes: list[Node], closeness: Closeness, one: int, other: int, small: int, large: int
) -> None:
    roles = (Role("launcher", one, {GPU: small}), Role("worker", other, {GPU: large}))
    gang = Gang("g", roles, 0.0, closeness=closeness)
    seating = seat(nodes, gang)
    if seating is not None:
        check(nodes, gang, seating)
        assert any(fits_by_hand(domain, roles) for domain in domains(nodes, closeness.required))
    for part in (roles[:1], roles[1:]):
        if seating is not None:
            assert seat(nodes, Gang("g", part, 0.0, closeness=closeness)), "a part of it finds no place"


@settings(max_examples=100)
@given(CLUSTERS, st.integers(1, 8), st.integers(1, 8))
def test_roles_of_one_size_find_a_place_whenever_there_is_one(nodes: list[Node], one: int, other: int) -> None:
    roles = (Role("a", one, {GPU: 1}), Role("b", other, {GPU: 1}))
    seating = seat(nodes, Gang("g", roles, 0.0))
    assert (seating is not None) == (sum(each.capacity[GPU] for each in nodes) >= one + other)


@settings(max_examples=100)
@given(CLUSTERS, CLOSE, LAYOUTS, st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_choice_does_not_depend_on_who_reported_first(
    nodes: list[Node], closeness: Closeness, layout: Parallelism | None, blocks: int, random: object
) -> None:
    role = Role("worker", blocks * (layout.tp if layout else 1), {GPU: 1}, parallelism=layout)
    gang = Gang("g", (role, Role("launcher", 1, {GPU: 1})), 0.0, closeness=closeness)
    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert seat(nodes, gang) == seat(shuffled, gang)


@settings(max_examples=200)
@given(CLUSTERS, st.integers(1, 4), st.integers(1, 2))
def test_stages_of_a_pipeline_share_a_rack_where_racks_hold_them(nodes: list[Node], pipelines: int, tp: int) -> None:
    role = Role("worker", pipelines * 2 * tp, {GPU: 1}, parallelism=Parallelism(tp, 2, pipelines))
    seating = seat(nodes, Gang("g", (role,), 0.0))
    whole = dict.fromkeys([each.labels["rack"] for each in nodes], 0)
    for each in nodes:
        whole[each.labels["rack"]] += each.capacity[GPU] // tp
    if seating is not None and sum(blocks // 2 for blocks in whole.values()) >= pipelines:
        blocks = [(name, i) for name, count in seating[0].items() for i in range(count // tp)]
        rack = {each.name: each.labels["rack"] for each in nodes}
        for first, second in zip(blocks[::2], blocks[1::2], strict=True):
            assert rack[first[0]] == rack[second[0]], "the stages of one pipeline, by rank, lie in two racks"


@pytest.mark.parametrize(
    ("members", "where"),
    [
        (1, {"r3-0": 1}),  # the tightest node
        (2, {"r1-0": 2}),
        (5, {"r1-0": 2, "r1-1": 3}),  # no node: the tightest rack
        (6, {"r0-0": 3, "r0-1": 3}),
        (8, {"r0-0": 3, "r0-1": 3, "r1-0": 2}),  # no rack: the tightest zone, few nodes
    ],
)
def test_the_smallest_domain_that_holds_the_gang(members: int, where: dict[str, int]) -> None:
    nodes = racks((3, 3), (2, 3), (4,), (1,))
    assert seat(nodes, Gang("g", (Role("w", members, {GPU: 1}),), 0.0)) == {0: where}


def test_the_scarcer_role_goes_first() -> None:
    big = Role("big", 1, {GPU: 4})
    small = Role("small", 4, {GPU: 1})
    nodes = [node("a", 4), node("b", 2), node("c", 2)]
    assert seat(nodes, Gang("g", (small, big), 0.0)) == {0: {"b": 2, "c": 2}, 1: {"a": 1}}


def test_roles_prefer_to_share_a_rack() -> None:
    roles = (Role("a", 2, {GPU: 2}), Role("b", 2, {GPU: 1}))
    seating = seat(racks((4,), (4, 2), (4,)), Gang("g", roles, 0.0, closeness=Closeness(preferred="rack")))
    assert seating is not None
    assert {name[:2] for seats in seating.values() for name in seats} == {"r1"}


def test_nobody_is_seated_where_they_must_not_be() -> None:
    state = State(racks((4,), (4,)), RACKS)
    ask = state.asker.entry((Gang("g", (Role("w", 4, {GPU: 1}),), 0.0),), 1).asks[0]
    parts = state.asker.seat(state.present, ask, [4], np.array([True, False]))
    assert parts is not None
    assert parts[0].nodes.tolist() == [1]
    assert state.asker.seat(state.present, ask, [5], np.array([True, False])) is None
