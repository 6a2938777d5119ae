"""Pods one by one: the deadlock gangs are there to prevent, and everything else such a scheduler does."""

from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.state import State
from tests.plan.small import GPU, binds, gang, node, started


def two_on_four(policy: str) -> State:
    state = State([node("n0", 4)], policy=parse(policy))
    state.submit(gang("a", 4))
    state.submit(gang("b", 4))
    return state


def test_two_gangs_hold_half_of_what_they_need_each_for_ever() -> None:
    state = two_on_four("pods")
    plan, _ = cycle(state, 0.0)
    assert started(plan) == ["a", "b", "a", "b"]
    assert not any(bind.complete for bind in plan.binds)
    assert [holding.missing() for holding in state.running.values()] == [[2], [2]]
    for now in (1.0, 1e6, 1e9):
        assert cycle(state, now)[0].actions == []
    assert state.wake_at(1e9) is None


def test_whole_gangs_start_one_after_the_other() -> None:
    state = two_on_four("easy")
    assert binds(cycle(state, 0.0)[0]) == {"a": ("start", {"n0": 4})}
    state.finish("a", 100.0)
    assert binds(cycle(state, 100.0)[0]) == {"b": ("start", {"n0": 4})}


def test_gangs_submitted_one_after_the_other_do_not_interleave() -> None:
    state = State([node("n0", 4)], policy=parse("pods"))
    state.submit(gang("late", 4, submitted=1.0))
    state.submit(gang("early", 4, submitted=0.0))
    plan, _ = cycle(state, 1.0)
    assert started(plan) == ["early"] * 4
    assert [bind.complete for bind in plan.binds] == [False, False, False, True]


def test_a_pod_that_does_not_fit_holds_up_no_other_shape() -> None:
    state = State([node("n0", 4)], policy=parse("pods"))
    state.submit(gang("large", 1, gpus=8))
    state.submit(gang("small", 2, gpus=1))
    plan, _ = cycle(state, 0.0)
    assert started(plan) == ["small", "small"]
    assert [bind.why for bind in plan.binds] == ["pod", "pod"]


def test_what_is_left_of_a_gang_is_gone_with_it() -> None:
    state = two_on_four("pods")
    cycle(state, 0.0)
    state.finish("a", 5.0)
    assert started(cycle(state, 5.0)[0]) == ["b", "b"]
    assert not state.pods
    assert state.ledger.free[state.ledger.resources[GPU]].tolist() == [0]


def test_a_gang_withdrawn_before_any_of_it_ran_leaves_nothing() -> None:
    state = State([node("n0", 4)], policy=parse("pods"))
    state.submit(gang("a", 4))
    state.submit(gang("b", 2, submitted=1.0))
    cycle(state, 1.0)
    state.withdraw("b")
    state.finish("a", 2.0)
    assert cycle(state, 2.0)[0].actions == []


def test_every_gang_of_a_group_gets_its_pods() -> None:
    state = State([node("n0", 4)], policy=parse("pods"))
    for uid in ("a", "b"):
        state.submit(gang(uid, 2, group="pair", group_size=2))
    plan, _ = cycle(state, 0.0)
    assert sorted(started(plan)) == ["a", "a", "b", "b"]
    for uid in ("a", "b"):
        state.finish(uid, 1.0)
    assert state.ledger.free[state.ledger.resources[GPU]].tolist() == [4]


def test_a_gang_too_large_for_the_cluster_takes_all_of_it() -> None:
    state = State([node("n0", 4)], policy=parse("pods"))
    state.submit(gang("huge", 6))
    assert started(cycle(state, 0.0)[0]) == ["huge"] * 4
    state.finish("huge", 1.0)
    assert not state.asker.in_use


def test_a_node_that_joins_takes_the_pods_that_wait() -> None:
    state = State([node("n0", 2)], policy=parse("pods"))
    state.submit(gang("half", 4))
    cycle(state, 0.0)
    state.submit(gang("new", 2, submitted=1.0))
    state.set_nodes([node("n0", 2), node("n1", 8)])
    plan, _ = cycle(state, 1.0)
    assert started(plan) == ["half", "half", "new", "new"]
    for uid in ("half", "new"):
        state.finish(uid, 2.0)
    assert (state.ledger.free == state.ledger.capacity).all()
    assert not state.asker.in_use
