"""Run times from measurements, on a toy application whose answers can be worked out by hand."""

from pathlib import Path
from shutil import copytree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import UserError
from muster.sim.readers.formats import read_trace
from muster.sim.readers.measured import load

DATA = Path(__file__).parent.parent / "data" / "pollux"
TOY = load(DATA / "traces" / "toy")


def test_the_workload_gets_run_times_from_the_folder_beside_it() -> None:
    jobs = read_trace(str(DATA / "workload.csv")).jobs
    assert [(job.id, job.gang.members, job.gang.submitted) for job in jobs] == [
        ("toy-0", 1, 107),
        ("toy-1", 2, 110),
        ("toy-2", 4, 120),
    ]
    # 100 iterations of 2 s; 60 of 2.5 s; (100 + 60) / 2 of 1.5 s, a share of 3 lying between 2 and 4.
    assert [job.runtime for job in jobs] == [200.0, 150.0, 120.0]


def test_a_share_beyond_what_fits_is_accumulated_with_one_synchronisation() -> None:
    # Batch 16 on one replica: two parts of 8, and none of it is synchronised on a single replica.
    assert TOY.runtime(1, 16) == 60 * (2.0 + 2.0)
    # Batch 16 on four: a share of 4 fits in one part.
    assert TOY.runtime(4, 16) == 60 * 2.0


def test_beyond_the_measured_placements_it_lies_between_whole_nodes() -> None:
    sixteen, middle, thirty_two = (TOY.runtime(replicas, 16) for replicas in (16, 24, 32))
    assert (sixteen, thirty_two) == (60 * 4.0, 60 * 6.0)
    assert middle == pytest.approx((sixteen + thirty_two) / 2)


@given(st.integers(1, 32), st.integers(8, 16))
def test_every_size_and_batch_within_the_measurements_has_a_run_time(replicas: int, batch: int) -> None:
    assert TOY.runtime(replicas, batch) > 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,1,toy,33,16", "num_replicas is '33'; measurements end at 32 replicas"),
        ("a,1,toy,2,99", "batch_size is '99'; training was recorded for a batch size of 8 to 16"),
        ("a,1,bird,2,16", "application is 'bird'; there are no measurements of that name"),
        ("a,1,toy,0,16", "num_replicas is '0'; give a number of at least 1"),
    ],
)
def test_what_was_not_measured_is_said(tmp_path: Path, row: str, message: str) -> None:
    copytree(DATA / "traces", tmp_path / "traces")
    path = tmp_path / "w.csv"
    path.write_text(f"name,time,application,num_replicas,batch_size\n{row}\n")
    with pytest.raises(UserError, match=message):
        read_trace(str(path))


def test_without_the_measurements_the_fix_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text((DATA / "workload.csv").read_text())
    with pytest.raises(UserError, match="put its folder `traces` beside this file"):
        read_trace(str(path))
