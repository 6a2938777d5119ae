"""What a domain has and a node does not: taken by who lives there, and back when it leaves."""

import pytest

from muster.model.gang import Gang, Role
from muster.model.topology import Closeness, Topology
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.rebuild import build, facts
from muster.plan.state import State
from tests.plan.small import GPU, RACKS, binds, gang, node, racks, running, started

TREES = Closeness("rack", resources=(("trees", 1),))


def state(trees: int = 1, policy: str = "easy", **more: int) -> State:
    resources = {("rack", "r0"): {"trees": trees}, ("rack", "r1"): {"trees": 1}} | {
        ("zone", zone): {"kilowatts": amount} for zone, amount in more.items()
    }
    return State(racks((4, 4), (4,), (8,)), Topology(RACKS.levels, resources), parse(policy))


def free(one: State) -> list[int]:
    return [int(amount) for amount in one.domains.free[1, "trees"]]


def test_a_domain_without_the_resource_holds_nobody_who_takes_it() -> None:
    one = state()
    one.submit(gang("a", 5, closeness=TREES))
    assert binds(cycle(one, 0.0)[0]) == {"a": ("start", {"r0-0": 4, "r0-1": 1})}
    assert free(one) == [0, 1, 0]


def test_nodes_are_there_and_the_tree_is_not() -> None:
    one = state()
    for uid in ("a", "b", "c"):
        one.submit(gang(uid, 2, closeness=TREES))
    plan, _ = cycle(one, 0.0)
    assert started(plan) == ["a", "b"]
    assert {name[:2] for _, seats in binds(plan).values() for name in seats} == {"r0", "r1"}
    one.finish("a", 10.0)
    assert started(cycle(one, 10.0)[0]) == ["c"]


def test_it_is_back_once_the_gang_is_gone_and_not_before() -> None:
    one = state()
    one.submit(gang("a", 8, closeness=TREES))
    cycle(one, 0.0)
    one.succeed("a", 0, "r0-0", 4)
    assert free(one) == [0, 1, 0]
    one.succeed("a", 0, "r0-1", 4)
    assert free(one) == [1, 1, 0]
    one.finish("a", 5.0)
    assert free(one) == [1, 1, 0]


@pytest.mark.parametrize("closeness", [Closeness("rack"), Closeness(), Closeness(preferred="rack")])
def test_who_takes_nothing_is_not_counted(closeness: Closeness) -> None:
    one = state(trees=0)
    one.submit(gang("a", 8, closeness=closeness))
    assert started(cycle(one, 0.0)[0]) == ["a"]
    assert free(one) == [0, 1, 0]


def test_a_resource_of_a_wider_level_is_taken_there() -> None:
    one = state(z0=5, z1=9)
    power = Closeness("zone", resources=(("kilowatts", 6),))
    one.submit(gang("a", 2, closeness=power))
    assert binds(cycle(one, 0.0)[0])["a"][1] == {"r2-0": 2}
    assert one.domains.free[0, "kilowatts"].tolist() == [5, 3]


def test_more_than_any_domain_has_is_hopeless() -> None:
    one = state()
    one.submit(gang("a", 2, closeness=Closeness("rack", resources=(("trees", 2),))))
    assert cycle(one, 0.0)[0].actions == []
    assert one.queue.entries["a"].kind.hopeless


def test_a_group_takes_for_each_of_its_gangs() -> None:
    one = state(trees=2)
    for uid in ("a", "b"):
        one.submit(Gang(uid, (Role("w", 4, {GPU: 1}),), 0.0, group="pair", group_size=2, closeness=TREES))
    assert len(started(cycle(one, 0.0)[0])) == 2
    assert sum(free(one)) == 1


def test_trials_leave_nothing_behind() -> None:
    one = state(trees=1)
    for uid in ("a", "b", "c"):
        one.submit(Gang(uid, (Role("w", 2, {GPU: 1}),), 0.0, group="three", group_size=3, closeness=TREES))
    assert cycle(one, 0.0)[0].actions == []
    assert free(one) == [1, 1, 0]
    assert (one.domains.capacity[1, "trees"] == one.domains.free[1, "trees"]).all()


def test_a_new_leader_counts_the_same() -> None:
    one = state(trees=2)
    one.adopt(running(gang("a", 2, closeness=TREES), 0.0, {"r0-0": 2}))
    one.submit(gang("b", 2, closeness=TREES))
    cycle(one, 1.0)
    assert free(build(facts(one), one.policy)) == free(one)
    one.set_nodes([*one.ledger.nodes, node("r2-9", zone="z1", rack="r2")])
    assert sum(free(one)) == 1
