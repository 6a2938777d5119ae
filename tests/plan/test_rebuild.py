"""Taking a state apart and building it again changes nothing that planning looks at."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness, Topology
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.rebuild import Facts, build, facts, in_order_of_arrival
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks, running

PAIR = [gang(uid, 3, group="pair", group_size=2, submitted=4.0) for uid in ("pa", "pb")]


def busy(policy: str = "easy") -> State:
    """Running, partial, elastic, grouped and promised gangs, and a group of which one is missing."""
    topology = Topology(RACKS.levels, {("rack", "r0"): {"trees": 1}})
    state = State(racks((4, 4), (4,)), topology, replace(parse(policy), age_bound=500.0))
    state.adopt(replace(running(gang("partial", 3), 0.0, {"r1-0": 2}), partial_since=1.0))
    trees = Closeness("rack", resources=(("trees", 1),))
    state.adopt(replace(running(gang("elastic", 2, most=9, closeness=trees), 0.0, {"r0-0": 3}), succeeded=(1,)))
    roles = (Role("a", 1, {GPU: 2}), Role("b", 4, {GPU: 1}))
    for one in (
        *PAIR,
        Gang("roles", roles, 5.0, walltime=9.0),
        gang("alone", 1, submitted=6.0, group="x", group_size=2),
    ):
        state.submit(one)
    cycle(state, 7.0)
    return state


def comparable(known: Facts) -> tuple[object, ...]:
    running = {
        one.gang.uid: (one.started, one.succeeded, one.partial_since, sorted(seats(one.seats))) for one in known.running
    }
    waiting = {one.uid: one.promised and (one.promised.at, one.promised.since) for one in known.waiting}
    return known.nodes, known.topology, running, waiting


def seats(parts: object) -> list[tuple[int, str, int]]:
    return [
        (part.role, name, count)
        for part in parts  # type: ignore[attr-defined]
        for name, count in zip(part.nodes, part.counts, strict=True)
    ]


@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs"])
def test_the_facts_of_what_was_built_are_the_facts_it_was_built_from(policy: str) -> None:
    state = busy(policy)
    again = build(facts(state), state.policy)
    assert comparable(facts(again)) == comparable(facts(state))
    assert (again.ledger.free == state.ledger.free).all()
    assert all((again.domains.free[key] == column).all() for key, column in state.domains.free.items())
    assert (again.partial, again.bending, set(again.promises)) == (state.partial, state.bending, set(state.promises))
    assert (set(again.queue.entries), set(again.groups)) == (set(state.queue.entries), set(state.groups))


@settings(max_examples=40)
@given(st.sampled_from(["easy", "easy-2", "conservative", "fcfs", "easy:sjf"]), st.data())
def test_the_copy_plans_as_the_state_does(policy: str, data: st.DataObject) -> None:
    state = State([node("n0"), node("n1")], policy=parse(policy))
    ends: dict[str, float] = {}
    for number in range(data.draw(st.integers(1, 8))):
        now = float(number)
        for each in range(data.draw(st.integers(0, 2))):
            length = float(data.draw(st.integers(1, 9)))
            state.submit(gang(f"g{number}-{each}", data.draw(st.integers(1, 8)), submitted=now, walltime=length))
        for uid in [uid for uid, end in ends.items() if end <= now]:
            del ends[uid]
            state.finish(uid, now)
        copy = build(facts(state), state.policy)
        plan, other = cycle(state, now)[0], cycle(copy, now)[0]
        assert binds(plan) == binds(other)
        assert {uid: e.promised for uid, e in state.promises.items()} == {
            u: e.promised for u, e in copy.promises.items()
        }
        ends |= {uid: state.running[uid].end for uid in binds(plan)}


def test_what_the_copy_does_is_no_concern_of_the_state() -> None:
    state = busy()
    before = comparable(facts(state))
    copy = build(facts(state), state.policy)
    copy.finish("elastic", 8.0)
    cycle(copy, 8.0)
    assert comparable(facts(state)) == before


def test_gangs_join_in_the_order_of_their_submission() -> None:
    gangs = [gang("late", 1, submitted=2.0), gang("early", 1, submitted=1.0), gang("too", 1, submitted=2.0)]
    assert [one.uid for one in in_order_of_arrival(gangs)] == ["early", "late", "too"]
