"""Rules about nodes alone, compiled into masks, against the definitions applied node by node."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.node import Node
from muster.model.rules import (
    NodeTerm,
    PreferredNodes,
    Requirement,
    Rules,
    Taint,
    Toleration,
)
from muster.plan.labels import Labels
from muster.plan.rules import WISH_WEIGHT, Classes
from tests.plan.onebyone import covered, node_admits, node_selected, node_tolerated, term_met
from tests.plan.worlds import nodes, static_rules


def mask(classes: Classes, rules: Rules) -> list[bool]:
    """The allowed nodes, whether or not they are all."""
    allowed = classes.allowed(rules)
    return [True] * len(classes.mark_of) if allowed is None else allowed.tolist()


def liking(classes: Classes, rules: Rules) -> list[int] | None:
    """The scores of all nodes, if they differ."""
    score = classes.preference(rules)
    return None if score is None else score.tolist()


@given(nodes(), static_rules)
def test_masks_are_what_the_definitions_say(world: list[Node], rules: Rules) -> None:
    classes = Classes(world)
    expected = [node_admits(rules, node) for node in world]
    assert mask(classes, rules) == expected
    assert (classes.allowed(rules) is None) is all(expected)
    assert classes.selected(rules).tolist() == [node_selected(rules, node) for node in world]
    assert classes.tolerated(rules.tolerations).tolist() == [node_tolerated(rules, node) for node in world]


@given(nodes(), static_rules)
def test_scores_are_what_the_definitions_say(world: list[Node], rules: Rules) -> None:
    expected = [
        sum(wish.weight * term_met(wish.term, node) for wish in rules.nodes_preferred)
        - WISH_WEIGHT
        * sum(
            taint.effect == "PreferNoSchedule" and not any(covered(taint, each) for each in rules.tolerations)
            for taint in node.taints
        )
        for node in world
    ]
    assert liking(Classes(world), rules) == (None if len(set(expected)) == 1 else expected)


@given(st.data(), nodes(most=4), static_rules)
def test_updates_are_as_good_as_starting_over(data: st.DataObject, world: list[Node], rules: Rules) -> None:
    classes = Classes(world)
    mask(classes, rules)
    classes.preference(rules)
    for changed in data.draw(nodes(most=4)):
        number = data.draw(st.integers(0, len(world) - 1))
        world[number] = replace(changed, name=f"n{number}")
        classes.update(number, world[number])
    fresh = Classes(world)
    assert mask(classes, rules) == mask(fresh, rules)
    assert liking(classes, rules) == liking(fresh, rules)


@given(nodes(), static_rules, st.randoms())
def test_the_order_of_nodes_does_not_matter(world: list[Node], rules: Rules, rng: object) -> None:
    by_name = dict(zip([node.name for node in world], mask(Classes(world), rules), strict=True))
    rng.shuffle(world)  # type: ignore[attr-defined]
    assert dict(zip([node.name for node in world], mask(Classes(world), rules), strict=True)) == by_name


def test_a_cordon_needs_its_own_toleration() -> None:
    classes = Classes([Node("n0", {}, schedulable=False), Node("n1", {})])
    cordon = Toleration("node.kubernetes.io/unschedulable", "Exists")
    assert mask(classes, Rules()) == [False, True]
    assert mask(classes, Rules(tolerations=(cordon,))) == [True, True]
    assert mask(classes, Rules(tolerations=(Toleration("", "Exists"),))) == [True, True]


def test_no_toleration_makes_a_dead_node_usable() -> None:
    classes = Classes([Node("n0", {}, ready=False)])
    assert mask(classes, Rules(tolerations=(Toleration("", "Exists"),))) == [False]


@pytest.mark.parametrize(
    ("operator", "bound", "admitted"),
    [
        *(("Lt", "6", True), ("Lt", "5", False), ("Gt", "4", True), ("Gt", "5", False), ("Gt", "-1", True)),
        *(("Lt", "06", False), ("Lt", "+6", False), ("Gt", "-0", False), ("Lt", "", False)),
    ],
)
def test_numeric_tolerations_take_plain_integers_only(operator: str, bound: str, admitted: bool) -> None:
    classes = Classes([Node("n0", {}, taints=(Taint("sla", "5"),))])
    toleration = Toleration("sla", operator, bound)  # type: ignore[arg-type]
    assert mask(classes, Rules(tolerations=(toleration,))) == [admitted]


def test_all_volumes_must_agree() -> None:
    classes = Classes([Node(f"n{i}", {}, {"zone": "ab"[i % 2], "rack": "ab"[i // 2]}) for i in range(4)])
    zone = (NodeTerm((Requirement("zone", "In", ("a",)),)),)
    rack = (NodeTerm((Requirement("rack", "In", ("b",)),)),)
    assert mask(classes, Rules(volumes=(zone, rack))) == [False, False, True, False]
    assert mask(classes, Rules(volumes=((*zone, *rack),))) == [True, False, True, True]


def test_answers_are_remembered_and_cannot_be_changed_by_accident() -> None:
    classes = Classes([Node("n0", {}, {"zone": "a"}), Node("n1", {})])
    wish = PreferredNodes(7, NodeTerm((Requirement("zone", "Exists"),)))
    rules = Rules(node_selector=(("zone", "a"),), nodes_preferred=(wish,))
    allowed, liked = classes.allowed(rules), classes.preference(rules)
    assert classes.allowed(Rules(node_selector=(("zone", "a"),))) is allowed
    assert classes.preference(rules) is liked
    assert allowed is not None
    assert liked is not None
    assert not allowed.flags.writeable
    assert not liked.flags.writeable


def test_values_that_come_and_go_do_not_pile_up() -> None:
    labels = Labels([Node("n0", {}, {"beat": "0"})])
    column = labels.column("beat")
    for beat in range(1, 500):
        labels.update(0, Node("n0", {}, {"beat": str(beat)}))
        column = labels.column("beat")
    assert len(column.values) < 100
    assert column.mask(Requirement("beat", "In", ("499",))).tolist() == [True]
    assert column.mask(Requirement("beat", "In", ("498",))).tolist() == [False]


def test_ten_thousand_nodes_are_decided_by_their_few_kinds() -> None:
    """Held against deciding node by node, so that it holds on any machine."""
    gpu = (Taint("gpu", "", "NoSchedule"),)
    world = [Node(f"n{i}", {}, {"host": f"n{i}", "kind": f"k{i % 7}"}, gpu * (i % 2)) for i in range(10_000)]
    rules = Rules(
        nodes_any=(NodeTerm((Requirement("kind", "In", ("k1", "k2")), Requirement("host", "NotIn", ("n1",)))),),
        tolerations=(Toleration("gpu", "Exists"),),
    )
    found, took = [], []
    for _ in range(3):
        classes = Classes(world)
        began = time.perf_counter()
        found = mask(classes, rules)
        took.append(time.perf_counter() - began)
    began = time.perf_counter()
    assert [node_admits(rules, node) for node in world] == found
    assert min(took) < (time.perf_counter() - began) / 2
