"""The public GPU traces: small hand-made tables of each format, and the real ones where they are at hand."""

from pathlib import Path

import pytest

from muster.errors import UserError
from muster.model.rules import NodeTerm, Requirement
from muster.sim.readers.formats import read_trace
from tests.sim.traces import traces

DATA = Path(__file__).parent.parent / "data"


def test_itp_jobs_are_gangs_of_one_gpu_members_of_unknown_length() -> None:
    workload = read_trace(str(DATA / "itp.csv"))
    first, second, third = workload.jobs
    assert [(role.min, role.request) for role in first.gang.roles] == [(16, {"nvidia.com/gpu": 1})]
    assert (first.runtime, first.gang.submitted, first.gang.deadline) == (288476, 5810, 314395)
    assert first.gang.length is None
    assert first.gang.roles is second.gang.roles
    assert third.gang.deadline is None


def test_tiresias_jobs() -> None:
    jobs = read_trace(str(DATA / "tiresias.csv")).jobs
    assert [(job.id, job.gang.members, job.gang.submitted, job.runtime) for job in jobs] == [
        ("0", 1, 0, 164),
        ("1", 8, 30, 147),
    ]


def test_openb_pods_share_cards_in_thousandths_and_bring_their_nodes() -> None:
    workload = read_trace(str(DATA / "openb" / "pods.csv"))
    assert [job.id for job in workload.jobs] == ["pod-0", "pod-4", "pod-1"]  # in order of creation
    share, plain, cards = (job.gang.roles[0] for job in workload.jobs)
    assert share.request == {"cpu": 12000, "memory": 16384 << 20, "nvidia.com/gpu-milli": 460}
    assert plain.request == {"cpu": 4000, "memory": 512 << 20}
    assert cards.request["nvidia.com/gpu-milli"] == 2000
    models = Requirement("nvidia.com/gpu.product", "In", ("T4", "P100"))
    assert cards.rules.nodes_any == (NodeTerm((models,)),)
    assert workload.jobs[0].runtime == 500  # from scheduling to deletion
    cpu_node, gpu_node = workload.nodes
    assert "nvidia.com/gpu-milli" not in cpu_node.capacity
    assert gpu_node.capacity["nvidia.com/gpu-milli"] == 2000
    assert gpu_node.labels == {"nvidia.com/gpu.product": "T4"}


def test_openb_pods_without_a_known_run_time_are_left_out() -> None:
    skipped = read_trace(str(DATA / "openb" / "pods.csv")).skipped
    assert "line 4: pod pod-2 left out: it was never scheduled" in skipped[0]
    assert "line 5: pod pod-3 left out: its run time is 0" in skipped[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",460,", ",1460,", "line 2: gpu_milli is '1460'; give at most 1000"),
        (",12000,", ",-1,", "line 2: cpu_milli is '-1'; give a number of at least 0"),
        ("deletion_time", "gone", "line 1: there is no creation_time and deletion_time"),
    ],
)
def test_openb_errors_name_the_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text((DATA / "openb" / "pods.csv").read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_trace(str(path))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("itp.csv", ",16,288476", ",0,288476", "line 2: num_gpu is '0'; give a number of at least 1"),
        ("itp.csv", ",16,288476", ",16,0", "line 2: duration is '0'; give a number above 0"),
        ("itp.csv", ",16,288476", ",1.5,9", "line 2: num_gpu is '1.5'; give a whole number from 1 to 1000000000"),
        ("itp.csv", ",16,288476", ",16", "line 2: 7 fields; the header has 8"),
        ("tiresias.csv", ",164,", ",later,", "line 2: duration is 'later'; give a number"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    path = tmp_path / name
    path.write_text((DATA / name).read_text().replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        read_trace(str(path))
    assert str(caught.value).startswith(f"{path}, {message}")


def test_the_ten_itp_clusters_are_all_read() -> None:
    archive = traces() / "elasticflow" / "raw-traces.tar.gz"
    assert sum(len(read_trace(f"{archive}:{number}").jobs) for number in range(1, 11)) == 69351


def test_the_openb_nodes_are_all_read() -> None:
    workload = read_trace(str(traces() / "openb" / "openb_pod_list_default.csv"))
    cards = sum(node.capacity.get("nvidia.com/gpu-milli", 0) for node in workload.nodes)
    assert (len(workload.jobs) + len(workload.skipped), len(workload.nodes), cards) == (8152, 1523, 6212000)


@pytest.mark.parametrize("folder", ["pollux/workloads", "sia/philly", "sia/saturn", "sia/newtrace"])
def test_every_pollux_and_sia_workload_gets_its_run_times(folder: str) -> None:
    for path in sorted((traces() / folder).glob("workload-*.csv")):
        jobs = read_trace(str(path)).jobs
        assert len(jobs) in {160, 960}
        assert all(10 < job.runtime < 20 * 3600 for job in jobs)


def test_run_times_are_those_pollux_drew_its_workloads_by() -> None:
    """Two applications that come in one size only, against Pollux' formula worked out separately."""
    jobs = {job.gang.name: job for job in read_trace(str(traces() / "pollux/workloads/workload-6.csv")).jobs}
    assert round(jobs["yolov3"].runtime) == 12870
    assert round(jobs["ncf"].runtime) == 46
