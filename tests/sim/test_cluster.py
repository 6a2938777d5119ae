"""Cluster files, flat machines, and the complaints about them."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.errors import UserError
from muster.model.gang import Gang, Role
from muster.model.rules import Taint
from muster.model.topology import Closeness
from muster.sim.cluster import check_levels, flat, of_workload, on_one_machine, read_cluster
from muster.sim.workload import Job, Workload
from tests.sim.fake import job

DATA = Path(__file__).parent / "data"


def test_a_file_gives_nodes_domains_and_what_domains_have() -> None:
    cluster = read_cluster(str(DATA / "cluster.yaml"))
    assert [node.name for node in cluster.nodes] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3", "login"]
    first, login = cluster.nodes[0], cluster.nodes[4]
    assert first.capacity == {"cpu": 64000, "memory": 512 << 30, "nvidia.com/gpu": 8, "rdma/hca": 4}
    assert first.taints == (Taint("dedicated", "train"), Taint("slow", "", "PreferNoSchedule"))
    assert first.labels == {"pool": "train", "block": "block-0", "rack": "rack-0"}
    assert login.capacity == {"cpu": 3500}
    assert [node.labels["rack"] for node in cluster.nodes] == [
        "rack-0",
        "rack-0",
        "rack-1",
        "rack-1",
        "rack-2",
    ]
    assert cluster.topology.levels == ("block", "rack")
    assert cluster.topology.resources == {
        ("block", "block-0"): {"network/trees": 2},
        ("block", "block-9"): {"network/trees": 1},
    }
    assert (cluster.unit, cluster.capacity) == ("nvidia.com/gpu", 32)


def written(folder: Path, text: str) -> str:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": it is empty"),
        ("nodes: [", "line 1: this is not YAML"),
        ("just words", "give a mapping"),
        ("machines: []", "line 1: machines: not known; give one of: nodes, topology"),
        ("topology: []", "there is no `nodes`"),
        ("nodes: []", "line 1: nodes: there are no nodes"),
        ("nodes: 3", "line 1: nodes: give a list"),
        ("nodes:\n  - cpu: 1", "line 2: nodes[0]: there is no `name`"),
        ("nodes:\n  - name: a", "line 2: nodes[0]: it has nothing; give cpu, gpus or resources"),
        ("nodes:\n  - name: a\n    gpus: 0", "line 2: nodes[0]: it has nothing"),
        ("nodes:\n  - name: a\n    count: 0\n    cpu: 1", "line 3: nodes[0].count: 0 is not from 1 to 1000000"),
        (
            "nodes:\n  - name: a\n    count: two\n    cpu: 1",
            "line 3: nodes[0].count: 'two' is not a whole number",
        ),
        ("nodes:\n  - name: a\n    cpu: -1", "line 3: nodes[0].cpu: -1 is below zero"),
        ("nodes:\n  - name: a\n    cpu: 1E", "line 3: nodes[0].cpu: 1E is more than any machine has"),
        ("nodes:\n  - name: a\n    cpu: lots", "line 3: nodes[0].cpu: "),
        (
            "nodes:\n  - name: a\n    cpus: 1",
            "line 3: nodes[0].cpus: not known; give one of: name, count, cpu",
        ),
        ("nodes:\n  - name: a\n    cpu: 1\n    cpu: 2", "line 4: nodes[0].cpu: given twice"),
        ("nodes:\n  - {name: a, cpu: 1}\n  - {name: a, cpu: 1}", "there are two nodes 'a'"),
        ("nodes:\n  - {name: a, cpu: 1, taints: [x]}", "line 2: nodes[0].taints[0]: 'x' is not a taint"),
        ("nodes:\n  - {name: a, cpu: 1, taints: ['x:Never']}", "'x:Never' is not a taint"),
        ("nodes: [{name: a, cpu: 1}]\ntopology:\n  - nodes: 2", "line 3: topology[0]: there is no `level`"),
        (
            "nodes: [{name: a, cpu: 1}]\ntopology:\n  - level: r",
            "line 3: topology[0]: node 'a' has no label 'r'",
        ),
        (
            "nodes: [{name: a, cpu: 1}]\ntopology:\n  - {level: r, nodes: 1}\n  - {level: r, nodes: 1}",
            "line 4: topology[1].level: level 'r' is there twice",
        ),
        (
            "nodes: [{name: a, cpu: 1}]\ntopology:\n  - {level: r, nodes: 1, domains: {r-7: {t: 1}}}",
            "line 3: topology[0].domains.r-7: there is no such domain; there are: r-0",
        ),
    ],
)
def test_a_malformed_file_is_one_line_naming_file_line_and_field(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_cluster(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("absent.yaml", "absent.csv"):
        with pytest.raises(UserError, match="no such file"):
            read_cluster(str(tmp_path / name))


def test_tables_of_other_projects_are_clusters_too(tmp_path: Path) -> None:
    path = tmp_path / "n6g4.csv"
    path.write_text("num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,3,4,40,256\n")
    cluster = read_cluster(str(path))
    assert (len(cluster.nodes), cluster.capacity, cluster.topology.levels) == (6, 24, ("switch",))
    assert [node.labels["switch"] for node in cluster.nodes] == ["switch-0"] * 3 + ["switch-1"] * 3
    assert len({node.name for node in cluster.nodes}) == 6
    assert len(read_cluster(str(DATA / "openb" / "openb_node_list_all_node.csv")).nodes) == 2
    path.write_text("colour\nred\n")
    with pytest.raises(UserError, match="neither an openb node list nor a Tiresias cluster"):
        read_cluster(str(path))


def test_a_flat_machine_has_slots_of_what_jobs_count_in() -> None:
    cluster = flat(8, [job("a", 0, 1, 4)])
    assert cluster.nodes[0].capacity == {"cpu": 8000}
    assert (cluster.unit, cluster.capacity) == ("cpu", 8)
    gang = Gang("b", (Role("w", 2, {"nvidia.com/gpu": 4, "cpu": 16000, "memory": 5}),), 0)
    cluster = flat(8, [Job(gang, 1.0, "b")])
    assert cluster.nodes[0].capacity["nvidia.com/gpu"] == 8
    assert cluster.nodes[0].capacity["cpu"] >= 2 * 16000  # never the reason not to start
    assert (cluster.unit, cluster.capacity) == ("nvidia.com/gpu", 8)


def test_a_flat_machine_of_shared_cards_counts_cards() -> None:
    gang = Gang("b", (Role("w", 1, {"nvidia.com/gpu-milli": 460}),), 0)
    cluster = flat(3, [Job(gang, 1.0, "b")])
    assert cluster.nodes[0].capacity == {"nvidia.com/gpu-milli": 3000}
    assert (cluster.unit, cluster.capacity) == ("nvidia.com/gpu-milli", 3)


@pytest.mark.parametrize("procs", [0, -4, 10**12])
def test_a_machine_without_slots_is_refused(procs: int) -> None:
    with pytest.raises(UserError, match="give at least 1"):
        flat(procs, [])


def test_a_trace_without_machines_needs_one() -> None:
    with pytest.raises(UserError, match="give --procs N or --cluster FILE"):
        of_workload(Workload("day", ()))


def test_on_one_machine_everything_is_close() -> None:
    close, anywhere = job("a", 0, 1, 1, closeness=Closeness("rack", "block")), job("b", 0, 1, 1)
    jobs = on_one_machine(Workload("w", (close, anywhere))).jobs
    assert [each.gang.closeness for each in jobs] == [Closeness(), Closeness()]
    assert jobs[0].id == "a"
    plain = Workload("w", (anywhere,))
    assert on_one_machine(plain) is plain


def test_levels_that_the_cluster_lacks_are_named() -> None:
    cluster = read_cluster(str(DATA / "cluster.yaml"))
    check_levels(Workload("w", (job("a", 0, 1, 1, closeness=Closeness("rack", "block")),)), cluster)
    with pytest.raises(UserError, match="job 'a' names the level 'island'; the cluster has block, rack: add it"):
        check_levels(Workload("w", (job("a", 0, 1, 1, closeness=Closeness(preferred="island")),)), cluster)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_a_cluster_or_one_clear_line(tmp_path: Path, data: st.DataObject) -> None:
    text = (DATA / "cluster.yaml").read_text()
    begin = data.draw(st.integers(0, len(text)))
    put = data.draw(st.text(alphabet="a09-:[]{}#&*'\"\n ,.|>%", max_size=4))
    path = written(tmp_path, text[:begin] + put + text[begin + data.draw(st.integers(0, 6)) :])
    try:
        assert read_cluster(path).nodes
    except UserError as error:
        assert str(error).startswith(path)
        assert "\n" not in str(error)
