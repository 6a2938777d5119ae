"""Cluster files, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.errors import UserError
from muster.local import cluster_file


def test_groups_of_nodes_become_templates(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("""
nodes:
- {count: 4, prefix: gpu, capacity: {cpu: 64, nvidia.com/gpu: 8}, racks: 2, blocks: 1, zone: a,
   labels: {tier: fast}, taints: [{key: gpu, effect: NoSchedule}]}
- {kind: process, prefix: real}
""")
    gpu, real = cluster_file.read(path)
    nodes = list(gpu.objects(0))
    assert [n["metadata"]["labels"]["topology.kubernetes.io/rack"] for n in nodes] == ["rack-0"] * 2 + ["rack-1"] * 2
    assert nodes[0]["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert nodes[0]["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert (real.kind, real.count) == ("process", 1)


def test_the_short_spelling_of_simulator_files_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("""
nodes:
- {name: h100, count: 2, cpu: 96, memory: 1Ti, gpus: 8, resources: {rdma/hca: 4},
   taints: ["dedicated=train:NoSchedule"]}
""")
    (h100,) = cluster_file.read(path)
    assert h100.prefix == "h100"
    assert h100.capacity == {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "rdma/hca": "4"}
    assert h100.taints == ({"key": "dedicated", "value": "train", "effect": "NoSchedule"},)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "needs a list 'nodes' of node groups"),
        ("nodes: {}", "needs a list 'nodes' of node groups"),
        ("nodes: [1]", "nodes[0]: must be a mapping"),
        ("nodes: [{}]\nracks: 2", "does not know 'racks'; the only key is 'nodes'"),
        ("nodes: [{cuont: 2}]", "nodes[0]: does not know 'cuont'; it knows count, prefix"),
        ("nodes: [{count: two}]", "nodes[0].count: must be a whole number, not 'two'"),
        ("nodes: [{kind: real}]", "nodes[0].kind: must be simulated or process, not 'real'"),
        ("nodes: [{capacity: {cpu: lots}}]", "nodes[0].capacity.cpu: quantity 'lots'"),
        ("nodes: [{taints: [{key: a}]}]", "nodes[0].taints[0]: needs a key and an effect"),
        ("nodes: [{labels: 3}]", "nodes[0].labels: must be a mapping"),
        ("nodes: [{}, {}]", "two groups are called 'node'"),
        ("nodes: [", "is not YAML"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        cluster_file.read(path)
    assert complaint in str(refused.value) and str(path) in str(refused.value) and "\n" not in str(refused.value)
