"""Every waiting gang has a reason and, where anything is known, a time."""

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.plan.cycle import cycle
from muster.plan.forecast import expectations
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
