"""Rules about other pods, against pod-by-pod Kubernetes: affinity, anti-affinity, ports, spread."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Role
from muster.model.node import Node
from muster.model.rules import (
    ANYWHERE,
    HostPort,
    PodSelector,
    PodTerm,
    PreferredPods,
    Requirement,
    Rules,
    Spread,
)
from muster.plan.labels import Bools, Ints
from muster.plan.limits import UNLIMITED, Limits
from muster.plan.rules import Classes
from muster.plan.spread import allocate
from muster.plan.tenants import Tenants
from tests.plan.onebyone import Cluster, Pod, can_start_in_turn, every_way
from tests.plan.worlds import nodes, pod_labels, pod_rules

namespaces = st.sampled_from(["team", "other"])
pods = st.builds(Pod, namespaces, pod_labels, pod_rules)


def array(*numbers: int) -> Ints:
    """An array as the core passes them."""
    return np.array(numbers, dtype=np.int64)


def role(pod: Pod) -> Role:
    """The role whose members are such pods."""
    return Role("r", 1, {}, rules=pod.rules, labels=pod.labels)


@st.composite
def worlds(draw: st.DrawFn, most_nodes: int = 5) -> Cluster:
    """Nodes with room and pods that run there, however they came to."""
    world = draw(nodes(most=most_nodes, marked=draw(st.booleans()), keys=("zone", "rack")))
    cluster = Cluster(world, [draw(st.integers(1, 3)) for _ in world])
    for pod in draw(st.lists(pods, max_size=4)):
        node = draw(st.integers(0, len(world) - 1))
        cluster.slots[node] += 1
        cluster.start(pod, node)
    return cluster


def tenants_of(cluster: Cluster) -> Tenants:
    """The same pods, as the brain keeps them."""
    tenants = Tenants(Classes(cluster.nodes))
    for pod, node in cluster.pods:
        tenants.add(pod.namespace, role(pod), array(node), array(1))
    return tenants


def seats(tenants: Tenants, cluster: Cluster, pod: Pod, need: int) -> list[int] | None:
    """Where the brain would start `need` such pods: one entry per pod."""
    allowed = tenants.classes.allowed(pod.rules)
    slots = np.array(cluster.slots, dtype=np.int64) * (1 if allowed is None else allowed)
    limits = tenants.limits(pod.namespace, role(pod))
    if limits.allowed is not None:
        slots = slots * limits.allowed
    if limits.per_node is not None:
        slots = np.minimum(slots, limits.per_node)
    found = allocate(slots, need, limits)
    return None if found is None else np.repeat(*found).tolist()


def single(rules: Rules) -> bool:
    """Whether rules about pods come to one constraint, which is then decided exactly."""
    spread = sum(each.required for each in rules.spread)
    return bool(rules.near) + len(rules.away) + spread + bool(rules.host_ports) <= 1


@settings(max_examples=400)
@given(worlds(), pods, st.integers(1, 5))
def test_seats_are_ones_that_kubernetes_would_grant_one_by_one(cluster: Cluster, pod: Pod, need: int) -> None:
    found = seats(tenants_of(cluster), cluster, pod, need)
    if found is not None:
        assert len(found) == need
        assert can_start_in_turn(cluster, pod, found)


@settings(max_examples=400)
@given(worlds(most_nodes=4), pods, st.integers(1, 4))
def test_one_constraint_finds_seats_whenever_there_are_any(cluster: Cluster, pod: Pod, need: int) -> None:
    if single(pod.rules):
        found = seats(tenants_of(cluster), cluster, pod, need)
        possible = next(every_way(cluster, pod, need), None)
        assert (found is None) is (possible is None)


@given(worlds(), pods)
def test_for_one_member_every_mixture_is_exact(cluster: Cluster, pod: Pod) -> None:
    found = seats(tenants_of(cluster), cluster, pod, 1)
    assert (found is None) is (next(every_way(cluster, pod, 1), None) is None)


@given(worlds(), pods)
def test_unconcerned_means_unlimited(cluster: Cluster, pod: Pod) -> None:
    tenants = tenants_of(cluster)
    if not tenants.concerns(pod.namespace, role(pod)):
        assert tenants.limits(pod.namespace, role(pod)) is UNLIMITED


@settings(max_examples=200)
@given(worlds(), pods, pods, st.data())
def test_what_is_removed_leaves_no_trace(cluster: Cluster, pod: Pod, other: Pod, data: st.DataObject) -> None:
    tenants = tenants_of(cluster)
    before = seats(tenants, cluster, pod, 2)
    added = []
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.integers(0, len(cluster.nodes) - 1))
        parts = (array(node), array(data.draw(st.integers(1, 3))))
        tenants.add(other.namespace, role(other), *parts)
        added.append(parts)
    seats(tenants, cluster, pod, 2)
    same_arrays, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    for nodes_, counts in added[::-1] if reverse else added:
        parts = (nodes_, counts) if same_arrays else (nodes_.copy(), counts.copy())
        tenants.remove(other.namespace, role(other), *parts)
    assert seats(tenants, cluster, pod, 2) == before


@given(worlds(), pods, st.randoms())
def test_the_order_of_arrival_does_not_matter(cluster: Cluster, pod: Pod, rng: object) -> None:
    before = seats(tenants_of(cluster), cluster, pod, 3)
    rng.shuffle(cluster.pods)  # type: ignore[attr-defined]
    assert seats(tenants_of(cluster), cluster, pod, 3) == before


WORLD = [Node(f"n{i}", {}, {"host": f"n{i}", "rack": f"r{i // 2}"}) for i in range(6)]
APP = PodSelector((Requirement("app", "In", ("x",)),))
HOST, RACK = PodTerm(APP, "host"), PodTerm(APP, "rack")


def listed(values: Ints | Bools | None) -> list[int]:
    """The array as a list, which must be there."""
    assert values is not None
    return [int(each) for each in values]


def limits_of(rules: Rules, *running: tuple[Rules, Sequence[int]], labels: str = "x") -> Limits:
    """The limits of a role with label app=x while pods with app=x and these rules run on some nodes."""
    tenants = Tenants(Classes(WORLD))
    for other, where in running:
        tenants.add(
            "team",
            Role("r", 1, {}, rules=other, labels={"app": "x"}),
            array(*where),
            array(*[1] * len(where)),
        )
    return tenants.limits("team", Role("r", 1, {}, rules=rules, labels={"app": labels}))


def test_members_apart_by_host_are_a_cap_and_by_rack_one_each() -> None:
    by_host = limits_of(Rules(away=(HOST,)))
    assert listed(by_host.per_node) == [1] * 6
    assert by_host.simple
    by_rack = limits_of(Rules(away=(RACK,)))
    assert by_rack.per_node is None
    assert [codes.tolist() for codes in by_rack.apart] == [[0, 0, 1, 1, 2, 2]]


def test_anti_affinity_works_both_ways() -> None:
    assert listed(limits_of(ANYWHERE, (Rules(away=(RACK,)), [2])).allowed) == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert listed(limits_of(Rules(away=(RACK,)), (ANYWHERE, [2])).allowed) == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert limits_of(ANYWHERE, (ANYWHERE, [2])) is UNLIMITED


def test_affinity_follows_who_is_there_and_the_first_brings_the_rest_along() -> None:
    near = Rules(near=(RACK,))
    assert listed(limits_of(near, (ANYWHERE, [4])).allowed) == [False] * 4 + [True] * 2
    first = limits_of(near)
    assert first.allowed is None
    assert [codes.tolist() for codes in first.together] == [[0, 0, 1, 1, 2, 2]]
    assert not any(listed(limits_of(near, labels="y").allowed))


def test_host_ports_are_one_per_node_and_not_where_they_are_taken() -> None:
    ports = Rules(host_ports=(HostPort(80),))
    limits = limits_of(ports, (Rules(host_ports=(HostPort(80, address="10.0.0.1"), HostPort(81))), [3]))
    assert listed(limits.per_node) == [1] * 6
    assert listed(limits.allowed) == [True, True, True, False, True, True]
    assert limits_of(ports, (Rules(host_ports=(HostPort(80, "UDP"),)), [3])).allowed is None


def test_spread_counts_who_is_there() -> None:
    rules = Rules(spread=(Spread("rack", 1, APP), Spread("host", 1, APP, required=False)))
    (quota,) = limits_of(rules, (ANYWHERE, [0, 1, 2])).quotas
    assert (quota.present.tolist(), quota.eligible.tolist()) == ([2, 1, 0], [True] * 3)
    assert limits_of(Rules(spread=(Spread("host", 1, APP, required=False),))) is UNLIMITED


def test_spread_over_pods_unlike_the_members_is_a_mask() -> None:
    limits = limits_of(Rules(spread=(Spread("rack", 1, APP),)), (ANYWHERE, [0, 1, 2]), labels="y")
    assert not limits.quotas
    assert listed(limits.allowed) == [False, False, True, True, True, True]


def test_spread_looks_only_at_nodes_the_pod_may_use() -> None:
    rules = Rules(spread=(Spread("rack", 1, APP),), node_selector=(("rack", "r0"),))
    (quota,) = limits_of(rules, (ANYWHERE, [2])).quotas
    assert (quota.present.tolist(), quota.eligible.tolist()) == ([0, 0, 0], [True, False, False])
    anywhere = replace(rules.spread[0], honour_affinity=False)
    (quota,) = limits_of(replace(rules, spread=(anywhere,)), (ANYWHERE, [2])).quotas
    assert (quota.present.tolist(), quota.eligible.tolist()) == ([0, 1, 0], [True] * 3)


def test_wishes_about_pods_score_the_domains_they_run_in() -> None:
    tenants = Tenants(Classes(WORLD))
    tenants.add("team", Role("r", 1, {}, labels={"app": "x"}), array(0, 4), array(1, 5))
    wishes = (PreferredPods(10, RACK), PreferredPods(3, HOST, away=True))
    score = tenants.preference("team", Rules(pods_preferred=wishes))
    assert score is not None
    assert score.tolist() == [7, 10, 0, 0, 7, 10]
    assert tenants.preference("other", Rules(pods_preferred=wishes)) is None
    assert tenants.preference("team", ANYWHERE) is None


@pytest.mark.parametrize("copies", [False, True])
def test_ended_groups_are_forgotten(copies: bool) -> None:
    tenants = Tenants(Classes(WORLD))
    for number in range(5000):
        job = Role("r", 1, {}, rules=Rules(away=(HOST,)), labels={"job": f"j{number}", "app": "x"})
        nodes_, counts = array(number % 6), array(1)
        tenants.add("team", job, nodes_, counts)
        tenants.remove("team", job, nodes_.copy() if copies else nodes_, counts)
    assert len(tenants.groups) <= 1024
    assert len(tenants.by_pair) <= 1025


def test_a_group_stays_small_however_often_its_members_come_and_go() -> None:
    tenants = Tenants(Classes(WORLD))
    plain = Role("r", 1, {})
    for number in range(6 * 800):
        tenants.add("team", plain, array(number % 6), array(2))
        tenants.remove("team", plain, array((number + 3) % 6), array(1))
    (group,) = tenants.groups.values()
    assert len(group.parts) < 200
    spread = Rules(away=(PodTerm(PodSelector(), "host"),))
    tenants.remove("team", plain, array(*range(6)), array(*[800] * 6))
    assert tenants.limits("team", Role("r", 1, {}, rules=spread)).allowed is None
