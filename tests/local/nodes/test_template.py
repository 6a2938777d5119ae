"""Templates of nodes: names, places, capacity; and the durations people write."""

from __future__ import annotations

import pytest

from muster.local.nodes.addresses import Addresses, node_block
from muster.local.nodes.template import BLOCK, KIND, RACK, ZONE, DurationError, NodeTemplate, duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5400), ("250ms", 0.25), ("1.5m", 90), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 apples", "-3s", "1h x"])
def test_a_bad_duration_says_what_to_write(text: str) -> None:
    with pytest.raises(DurationError, match="write for example 90s"):
        duration(text)


def test_nodes_stand_in_racks_that_stand_in_blocks() -> None:
    template = NodeTemplate(count=8, racks=4, blocks=2, zone="z", labels={"gpu": "h100"}, capacity={"cpu": "8"})
    nodes = list(template.objects(0.0))
    assert [node["metadata"]["labels"][RACK] for node in nodes] == [f"rack-{i // 2}" for i in range(8)]
    assert [node["metadata"]["labels"][BLOCK] for node in nodes] == [f"block-{i // 4}" for i in range(8)]
    assert nodes[0]["metadata"]["labels"].items() >= {ZONE: "z", "gpu": "h100", KIND: "simulated"}.items()
    assert nodes[0]["status"]["allocatable"] == {"cpu": "8", "pods": "110"}
    addresses = {node["status"]["addresses"][0]["address"] for node in nodes}
    assert len(addresses) == 8


def test_addresses_are_unique_and_come_back() -> None:
    addresses = Addresses(node_block(3))
    taken = [addresses.take() for _ in range(254)]
    assert len(set(taken)) == 254
    assert addresses.take() == ""
    addresses.give(taken[7])
    assert addresses.take() == taken[7]


def test_an_address_in_use_before_is_not_given_again() -> None:
    addresses = Addresses(node_block(0))
    addresses.claim("10.0.0.1")
    addresses.claim("192.168.0.1")
    addresses.claim("nonsense")
    assert addresses.take() == "10.0.0.2"
