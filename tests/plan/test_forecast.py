"""The forecast is what then happens, where everything keeps its times and nobody else comes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.topology import Closeness
from muster.plan.cycle import cycle
from muster.plan.forecast import forecast
from muster.plan.policy import parse
from muster.plan.rebuild import facts
from muster.plan.state import State
from muster.sim.engine import Batch
from muster.sim.workload import Job, Workload
from tests.plan.small import GPU, RACKS, gang, node, racks, running

POLICIES = ["fcfs", "easy", "easy-2", "easy-sjbf", "conservative", "easy:priority", "easy:sjf", "conservative:wfp3"]


class Asked(Batch):
    """Ask for a forecast once the last gang has come."""

    told: dict[str, float]
    waiting: set[str]

    def instant(self, time: float, over: list[str], arrived: list[Gang]) -> None:
        super().instant(time, over, arrived)
        if self.gangs[self.arrivals[-1]] in arrived:
            before = facts(self.state)
            self.told = forecast(self.state, time)
            assert facts(self.state) == before, "asking changed the state"
            self.waiting = {ask.gang.uid for entry in self.state.queue.entries.values() for ask in entry.asks}


def check(policy: str, nodes: list[Node], gangs: list[Gang], age_bound: float = 60.0) -> None:
    """Each runs for exactly as long as it says."""
    jobs = tuple(Job(one, one.walltime or 0.0, one.uid) for one in gangs)
    state = State(nodes, RACKS, replace(parse(policy), age_bound=age_bound))
    engine = Asked(Workload("w", jobs), state, clairvoyant=False)
    engine.run(None)
    started = {outcome.job.id: outcome.started for outcome in engine.outcomes if outcome.job.id in engine.waiting}
    assert engine.told == {uid: time for uid, time in started.items() if time is not None}


@st.composite
def plain(draw: st.DrawFn) -> list[Gang]:
    wishes = st.tuples(st.integers(0, 20), st.integers(1, 8), st.integers(1, 40), st.integers(0, 1))
    return [
        gang(f"g{i}", size, submitted=float(at), walltime=float(length), priority=priority)
        for i, (at, size, length, priority) in enumerate(draw(st.lists(wishes, min_size=1, max_size=14)))
    ]


@settings(max_examples=120)
@given(st.sampled_from(POLICIES), plain())
def test_of_plain_gangs(policy: str, gangs: list[Gang]) -> None:
    check(policy, [node("n0"), node("n1", 3)], gangs)


@st.composite
def mixed(draw: st.DrawFn) -> list[Gang]:
    gangs = []
    for one in draw(plain()):
        roles: tuple[Role, ...] = (
            replace(one.roles[0], min=max(one.roles[0].min // 2, 1), request={GPU: draw(st.integers(1, 3))}),
        )
        if draw(st.booleans()):
            roles += (Role("launcher", 1, {GPU: 1}),)
        gangs.append(replace(one, roles=roles, closeness=draw(st.sampled_from([Closeness(), Closeness("rack")]))))
    return gangs


@settings(max_examples=80)
@given(st.sampled_from(POLICIES), mixed())
def test_of_gangs_with_roles_sizes_and_racks(policy: str, gangs: list[Gang]) -> None:
    check(policy, racks((4, 2), (4,)), gangs)


def test_who_waits_for_an_unknown_end_or_can_never_start_is_absent() -> None:
    state = State([node("n0")])
    state.adopt(running(gang("endless", 2, walltime=None), 0.0, {"n0": 2}))
    state.adopt(running(gang("ends", 2, walltime=50.0), 0.0, {"n0": 2}))
    for uid, size in (("large", 4), ("huge", 5), ("fits", 2)):
        state.submit(gang(uid, size, walltime=40.0))
    cycle(state, 1.0)
    assert forecast(state, 1.0) == {"fits": 50.0}


def test_a_gang_that_overstays_is_taken_to_end_at_once() -> None:
    state = State([node("n0")])
    state.adopt(running(gang("late", 4, walltime=50.0), 0.0, {"n0": 4}))
    state.submit(gang("waits", 4))
    cycle(state, 60.0)
    assert forecast(state, 60.0) == {"waits": 60.0}


def test_it_looks_no_further_than_asked() -> None:
    state = State([node("n0")])
    for number in range(5):
        state.submit(gang(f"g{number}", 4, submitted=float(number)))
    cycle(state, 5.0)
    assert forecast(state, 5.0, cycles=3) == {"g1": 105.0, "g2": 205.0}
    assert len(forecast(state, 5.0)) == 4


@pytest.mark.parametrize("size", [1, 3])
def test_a_group_is_told_together(size: int) -> None:
    state = State([node("n0", 3)])
    state.adopt(running(gang("a", 3, walltime=50.0), 0.0, {"n0": 3}))
    for number in range(size):
        state.submit(gang(f"g{number}", 1, group="crew" if size > 1 else "", group_size=size))
    cycle(state, 1.0)
    assert forecast(state, 1.0) == {f"g{number}": 50.0 for number in range(size)}
