"""Domains as runs of nodes, against the labels they come from."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.forest import Forest, in_order, natural, path
from tests.plan.small import RACKS, node, racks

LABELLED = st.lists(
    st.dictionaries(st.sampled_from(["zone", "rack"]), st.sampled_from(["a", "b"])), min_size=1, max_size=8
)


@given(LABELLED)
def test_every_domain_is_one_run_of_the_nodes_labelled_so(labels: list[dict[str, str]]) -> None:
    nodes = in_order([Node(f"n{i}", {}, each) for i, each in enumerate(labels)], RACKS)
    forest = Forest(nodes, RACKS)
    for depth, level in enumerate(forest.levels):
        seen = [path(each, RACKS.levels)[: depth + 1] for each in nodes]
        assert len(level.names) == len(set(seen)), "two runs of one domain, or two domains in one run"
        for domain, name in enumerate(level.names):
            begin, end = forest.span(depth, domain)
            assert {"/".join(each) for each in seen[begin:end]} == {name}
            assert set(level.of_node[begin:end].tolist()) == {domain}


@given(LABELLED)
def test_domains_nest(labels: list[dict[str, str]]) -> None:
    nodes = in_order([Node(f"n{i}", {}, each) for i, each in enumerate(labels)], RACKS)
    forest = Forest(nodes, RACKS)
    assert forest.inside(-1, 0, 0) == (0, len(forest.levels[0].names))
    for zone in range(len(forest.levels[0].names)):
        first, last = forest.inside(0, zone, 1)
        begin, end = forest.span(0, zone)
        assert (forest.span(1, first)[0], forest.span(1, last - 1)[1]) == (begin, end)


def test_racks_of_one_name_in_two_zones_are_two() -> None:
    nodes = in_order([node("a", zone="x", rack="1"), node("b", zone="y", rack="1")], RACKS)
    assert Forest(nodes, RACKS).levels[1].names == ["x/1", "y/1"]


def test_a_node_without_the_label_is_close_to_nobody() -> None:
    nodes = in_order([node("a", zone="x"), node("b", zone="x")], RACKS)
    assert Forest(nodes, RACKS).levels[1].names == ["x/(a)", "x/(b)"]


@pytest.mark.parametrize(
    ("level", "depth"),
    [("example.com/zone", 0), ("zone", 0), ("rack", 1), ("", -1), ("block", -1), ("example.com", -1)],
)
def test_a_level_goes_by_its_key_or_the_end_of_it(level: str, depth: int) -> None:
    assert Forest([], Topology(("example.com/zone", "rack"))).depth(level) == depth


@pytest.mark.parametrize(
    "names",
    [
        ["node-1", "node-2", "node-9", "node-10", "node-100"],
        ["a-1", "a-2", "b-1", "b-2"],
        ["gpu-1-9", "gpu-1-10", "gpu-2-1"],
        ["a01", "a1", "a2"],
        ["1", "2", "10", "a"],
        ["node", "node-0"],
        ["r0-n1", "r0-n2", "r1-n1"],
    ],
)
def test_names_sort_as_people_count_whatever_order_they_come_in(names: list[str]) -> None:
    for order in permutations(names):
        assert [each.name for each in in_order([node(name) for name in order], Topology())] == names


@given(st.text("ab-019", max_size=8), st.text("ab-019", max_size=8))
def test_any_two_names_compare_one_way(one: str, other: str) -> None:
    assert (natural(one) < natural(other)) == (natural(other) > natural(one))
    assert (natural(one) == natural(other)) == (one == other)


def test_order_goes_by_domain_before_name() -> None:
    nodes = racks((1, 1), (1,), (1,))
    assert [each.name for each in in_order(reversed(nodes), RACKS)] == ["r0-0", "r0-1", "r1-0", "r2-0"]
