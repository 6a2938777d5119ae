"""The project's own plain CSV."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import UserError
from muster.sim.readers.formats import read_trace
from muster.sim.readers.plain import read
from muster.sim.readers.source import Source

DATA = Path(__file__).parent.parent / "data"


def jobs(header: str, *rows: str) -> list[object]:
    return list(read(Source("t.csv", Path(), [header, *rows])).jobs)


def test_columns_become_gangs() -> None:
    small, wide, elastic = read_trace(str(DATA / "plain.csv")).jobs
    assert (small.gang.walltime, small.gang.user, small.gang.members) == (900, "ada", 1)
    assert [(role.min, role.request) for role in wide.gang.roles] == [(2, {"nvidia.com/gpu": 8})]
    assert (wide.gang.priority, wide.gang.queue, wide.gang.deadline) == (5, "train", 9000)
    assert wide.gang.closeness.preferred == "rack"
    assert [(role.min, role.most) for role in elastic.gang.roles] == [(4, 16)]
    assert elastic.runtime == 2000  # at 4 of the 8 members it takes twice as long


def test_amounts_are_spread_over_the_members() -> None:
    (job,) = read(Source("t.csv", Path(), ["job_id,submit,duration,cpus,memory_gib,nodes", "a,0,1,10,1,4"])).jobs
    assert job.gang.roles[0].request == {"cpu": 2500, "memory": 1 << 28}


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("gpus", "-1", "gpus is '-1'; give a number of at least 0"),
        ("gpus", "", "gpus is ''; the job asks for nothing"),
        ("gpus,nodes", "4,0", "nodes is '0'; give a number of at least 1"),
        ("gpus,nodes", "4,3", "gpus is '4'; it cannot be spread evenly over 3 members"),
        ("gpus,min,max", "4,8,2", "min is '8'; it is above max, 2"),
        ("gpus,min", "4,6", "min is '6'; it is above max, 4"),
        ("gpus,max", "4,3", "min is ''; it is above max, 3"),
        ("gpus,walltime", "4,0", "walltime is '0'; give a number above 0"),
        ("gpus,priority", "4,high", "priority is 'high'; give a number"),
        ("gpus,prio", "4,1", "column 'prio' is not known; columns: job_id, submit"),
        ("gpus,gpus", "4,4", "column 'gpus' is there twice"),
    ],
)
def test_errors_name_line_and_field(header: str, row: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        jobs(f"job_id,submit,duration,{header}", f"a,0,1,{row}")
    assert message in str(caught.value)
    assert str(caught.value).startswith("t.csv, line ")


CELLS = st.one_of(st.integers(-5, 99).map(str), st.sampled_from(["", "x", "nan", "1e400", "0.5"]))


@given(st.lists(CELLS, min_size=8, max_size=8))
def test_whatever_the_cells_hold_it_is_a_sound_job_or_one_clear_line(cells: list[str]) -> None:
    header = "job_id,submit,duration,gpus,cpus,nodes,min,max,walltime"
    try:
        (job,) = read(Source("t.csv", Path(), [header, ",".join(["a", *cells])])).jobs
    except UserError as error:
        assert str(error).startswith("t.csv, line 2: ")
    else:
        (role,) = job.gang.roles
        assert 1 <= role.min <= role.most
        assert job.runtime > 0
        assert all(amount > 0 for amount in role.request.values())
