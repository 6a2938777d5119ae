"""A new leader, built from the API alone, plans as the old one would have."""

from muster.plan.cycle import cycle
from tests.plan.scenes import Scene, Taste
from tests.plan.test_promises import told

POLICIES = ("fcfs", "easy", "easy-sjbf", "easy:priority", "easy:sjf", "easy:cost", "easy:edf")


def test_a_cold_state_plans_as_the_warm_one() -> None:
    """Not yet always: a promise that was taken back stays written down, and a new leader may honour it."""
    same = 0
    differ = []
    for seed in range(70):
        scene = Scene(seed, Taste(), POLICIES[seed % len(POLICIES)])
        for turn in range(10):
            scene.turn()
            scene.arrive()
            cold = scene.body.cold()
            plan, _ = cycle(cold, scene.body.now)
            if told(plan) == told(scene.body.plan()):
                same += 1
            else:
                differ.append((seed, turn))
    assert len(differ) <= same // 100, differ
