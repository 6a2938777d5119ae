"""Keeping nodes for a gang nobody can promise a time: it starts in the end, whoever else comes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness
from muster.plan.cycle import cycle
from muster.plan.hold import hold_for
from muster.plan.policy import parse
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks, running, started

BOUND = replace(parse("easy"), age_bound=50.0)


def held(state: State, one: Gang) -> set[str]:
    mask = hold_for(state, state.asker.entry((one,), 1))
    return {name for name, kept in zip(state.ledger.names, mask, strict=True) if kept}


def test_nodes_with_the_most_room_already_and_no_more_of_them_than_it_takes() -> None:
    state = State([node(f"n{i}") for i in range(4)])
    state.adopt(running(gang("a", 9, walltime=None), 0.0, {"n0": 4, "n1": 3, "n3": 2}))
    assert held(state, gang("g", 8)) == {"n2", "n3"}
    assert held(state, gang("g", 9)) == {"n1", "n2", "n3"}


@pytest.mark.parametrize(("taken", "rack"), [({"r0-0": 1}, "r1"), ({"r1-0": 1}, "r0")])
def test_one_domain_where_one_is_required(taken: dict[str, int], rack: str) -> None:
    state = State(racks((4, 4), (4, 4), (4,)), RACKS)
    state.adopt(running(gang("a", 1, walltime=None), 0.0, taken))
    assert held(state, gang("g", 8, closeness=Closeness("rack"))) == {f"{rack}-0", f"{rack}-1"}


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3),
)
def test_what_is_held_would_hold_all_of_it_if_nothing_else_ran(taken: list[int], roles: list[tuple[int, int]]) -> None:
    state = State([node(f"n{i}") for i in range(4)])
    where = {f"n{i}": count for i, count in enumerate(taken) if count}
    if where:
        state.adopt(running(gang("a", sum(taken), walltime=None), 0.0, where))
    one = Gang("g", tuple(Role(f"r{i}", members, {GPU: size}) for i, (members, size) in enumerate(roles)), 0.0)
    state.submit(one)
    if not state.queue.entries["g"].kind.hopeless:
        kept = [each for each in state.ledger.nodes if each.name in held(state, one)]
        alone = State(kept)
        alone.submit(one)
        assert started(cycle(alone, 0.0)[0]) == ["g"]


def stream(policy: str) -> tuple[State, list[float]]:
    """A large gang among small ones of unknown length that always overlap: when does it start?"""
    state = State([node("n0"), node("n1")], policy=replace(parse(policy), age_bound=50.0))
    ends: dict[str, float] = {}
    found: list[float] = []
    state.submit(gang("large", 8, walltime=None, submitted=1.0))
    for tick in range(300):
        now = float(tick)
        for uid in [uid for uid, end in ends.items() if end <= now]:
            del ends[uid]
            state.finish(uid, now)
        state.submit(gang(f"s{tick}", 2, walltime=None, submitted=now if tick else 0.0))
        for uid in started(cycle(state, now)[0]):
            ends[uid] = now + 5.0
            found += [now] if uid == "large" else []
    return state, found


@pytest.mark.parametrize("policy", ["easy", "conservative", "easy:sjf", "easy-2"])
def test_a_gang_past_the_age_bound_starts_however_many_small_ones_come(policy: str) -> None:
    _, found = stream(policy)
    assert found
    assert 51.0 <= found[0] <= 60.0


def test_nobody_else_starts_on_held_nodes_and_others_are_free() -> None:
    state = State([node("n0"), node("n1"), node("n2", 2)], policy=BOUND)
    state.adopt(running(gang("a", 3, walltime=None), 0.0, {"n0": 1, "n1": 2}))
    state.submit(gang("large", 8, walltime=None, submitted=0.0))
    cycle(state, 60.0)
    state.submit(gang("mid", 3, submitted=59.0))
    state.submit(gang("small", 2, submitted=59.5))
    assert binds(cycle(state, 60.0)[0]) == {"small": ("start", {"n2": 2})}
    assert "kept for a gang that has waited longest" in state.why("mid", 60.0)
    state.finish("a", 70.0)
    assert started(cycle(state, 70.0)[0]) == ["large"]
