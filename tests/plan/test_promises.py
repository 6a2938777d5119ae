"""The promises of the design, over random clusters, gangs, policies, misfortunes and clocks.

`tests.plan.body` checks every plan as it is carried out; here are the histories it is led through, and what must
hold at their end. One test leads them all and counts what fired, so that nothing is proven by never happening.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.topology import Closeness
from muster.plan.actions import Bind, Plan, Reserve
from tests.conftest import FIRED
from tests.plan.scenes import PLAIN, POLICIES, Scene, Taste

ACTIONS = ("start", "backfill", "repair", "grow", "pod", "reserve", "stop")
STORMS = 400
seeds = st.integers(0, 2**32)


def told(plan: Plan) -> list[object]:
    """A plan in words that can be compared."""
    return [
        (action.gang.uid, action.why, action.seats)
        if isinstance(action, Bind)
        else (action.gang.uid, action.reservation.at)
        if isinstance(action, Reserve)
        else (action.gang.uid, action.why)
        for action in plan.actions
    ]


def test_promises_are_kept_and_every_action_fires(record_property: Callable[[str, object], None]) -> None:
    fired: Counter[str] = Counter()

    def storm(seed: int) -> None:
        scene = Scene(seed)
        scene.storm(25)
        scene.calm()
        fired.update(scene.body.fired)
        assert [uid for uid in scene.body.waiting if not scene.hopeless(uid)] == [], "starved"

    def pods(seed: int) -> None:
        scene = Scene(seed, PLAIN, "pods")
        scene.storm(8)
        fired.update(scene.body.fired)

    for seed in range(1000, 1000 + STORMS):  # the same ones each time, so that a failure can be looked into
        storm(seed)
    for seed in range(20):
        pods(seed)
    record_property(FIRED, ", ".join(f"{name} {fired[name]}" for name in ACTIONS))
    assert set(ACTIONS) <= set(fired), f"never fired: {set(ACTIONS) - set(fired)}"


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_every_waiting_gang_has_a_reason(seed: int) -> None:
    scene = Scene(seed)
    for _ in range(8):
        scene.turn()
        for uid in scene.body.waiting:
            reason = scene.body.state.why(uid, scene.body.now)
            assert reason, f"{uid} waits for no reason"
            assert "\n" not in reason


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_the_same_events_give_the_same_plans(seed: int) -> None:
    first, second = Scene(seed), Scene(seed)
    for _ in range(8):
        first.turn()
        second.turn()
        assert told(first.body.last) == told(second.body.last)
    assert first.body.started_at == second.body.started_at


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(POLICIES))
def test_the_order_of_submit_calls_does_not_matter(seed: int, policy: str) -> None:
    scenes = [Scene(seed, Taste(failures=False, groups=False), policy) for _ in range(2)]
    for turn in range(6):
        plans = []
        for backwards, scene in enumerate(scenes):
            new = [scene.gang() for _ in range(3)]
            for gang, real in reversed(new) if backwards else new:
                scene.body.submit(gang, real)
            plans.append(told(scene.body.plan()))
            scene.body.run(scene.body.now + 3 + turn)
        assert plans[0] == plans[1]


def a_stream_of_small_gangs(scene: Scene, until: float) -> None:
    """Small gangs keep coming, faster than they leave."""
    while scene.body.now < until:
        for _ in range(3):
            gang, real = scene.gang()
            scene.body.submit(gang, min(real, 9.0))
        scene.body.plan()
        scene.body.run(scene.body.now + 2)


SMALL = Taste(1, 1, True, False, False, False, False, 0.5, 0.0, False)


@pytest.mark.parametrize("policy", ["easy", "easy-2", "easy-sjbf", "conservative", "easy:sjf", "easy:cost", "easy:las"])
@settings(max_examples=12, deadline=None)
@given(seeds, st.booleans())
def test_a_stream_of_smaller_gangs_starves_nobody(policy: str, seed: int, unknown: bool) -> None:
    scene = Scene(seed, SMALL, policy)
    scene.body.run(1)
    a_stream_of_small_gangs(scene, 20)
    big, _ = scene.gang()
    shape = scene.body.state.shapes.of(big.roles[0])
    everything = replace(big.roles[0], min=max(shape.most, 1), max=0)
    length = None if unknown else 5.0
    whole = replace(big, roles=(everything,), closeness=Closeness(), walltime=length, estimate=None)
    scene.body.submit(whole, 5.0)
    a_stream_of_small_gangs(scene, 20 + scene.policy.age_bound + 150)
    assert whole.uid in scene.body.started_at or scene.hopeless(whole.uid)
