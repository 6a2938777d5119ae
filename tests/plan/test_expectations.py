"""Every waiting gang has a reason and, where anything is known, a time."""

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.plan.actions import Reserve
from muster.plan.cycle import cycle
from muster.plan.forecast import expectations
from muster.plan.policy import parse
from muster.plan.state import State

GPU = "nvidia.com/gpu"


def gang(uid: str, members: int, gpus: int = 1, walltime: float | None = 100.0, submitted: float = 0.0) -> Gang:
    return Gang(uid, (Role("worker", members, {GPU: gpus}),), submitted, uid, walltime=walltime)


def test_promised_and_forecast_starts_stand_beside_each_other() -> None:
    state = State([Node("node-0", {GPU: 4})])
    for number, one in enumerate(("first", "second", "third")):
        state.submit(gang(one, 4, submitted=float(number)))
    cycle(state, 5.0)
    told = {each.uid: each for each in expectations(state, 5.0)}
    assert set(told) == {"second", "third"}
    assert told["second"].expected == 105.0
    assert told["third"].expected == 205.0
    assert "lacks room for 4 until about second 105, when first ends" in told["second"].reason


def test_where_no_end_is_known_no_time_is_told() -> None:
    state = State([Node("node-0", {GPU: 4})])
    state.submit(gang("endless", 4, walltime=None))
    state.submit(gang("waits", 2, submitted=1.0))
    cycle(state, 5.0)
    (told,) = expectations(state, 5.0)
    assert (told.uid, told.expected) == ("waits", None)
    assert "lacks room for 2" in told.reason


def test_what_can_never_start_says_so_and_has_no_time() -> None:
    state = State([Node("node-0", {GPU: 4})])
    state.submit(gang("huge", 5))
    cycle(state, 0.0)
    (told,) = expectations(state, 0.0)
    assert told.reason == "needs 5 × 1 GPU; even empty, the node it may use would hold 4"
    assert told.expected is None


def test_who_waited_without_a_time_does_not_take_a_promise_given_at_that_moment() -> None:
    """It came in the same cycle: that a time is found for it later, as a gang ends early, moves nobody."""
    state = State([Node("n0", {"gpu": 8, "cpu": 32})], policy=parse("easy"))
    asked = {
        "endless": (None, Role("r", 8, {"gpu": 1, "cpu": 1})),
        "limited": (9.0, Role("r", 6, {"cpu": 3})),
        "first": (1.0, Role("r", 7, {"gpu": 1, "cpu": 3})),
        "second": (5.0, Role("r", 5, {"cpu": 3})),
    }
    for uid, (walltime, role) in asked.items():
        state.submit(Gang(uid, (role,), 0.0, walltime=walltime))
    plan, _ = cycle(state, 0.0)
    assert [action.gang.uid for action in plan.actions if isinstance(action, Reserve)] == ["second"]
    state.finish("endless", 4.0)
    cycle(state, 4.0)
    assert state.promises["second"].promised == 9.0
