"""The Standard Workload Format, by hand-made records and by the archive's own logs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import UserError
from muster.sim.readers.formats import read_trace
from tests.sim.traces import traces

DATA = Path(__file__).parent.parent / "data"
GOOD = "1 0 5 100 4 -1 -1 4 200 -1 1 7 1 -1 2 -1 -1 -1"


def written(folder: Path, *records: str) -> str:
    path = folder / "log.swf"
    path.write_text("\n".join(("; a comment", *records)) + "\n")
    return str(path)


def test_the_columns_mean_what_the_format_says() -> None:
    job = read_trace(str(DATA / "tiny.swf")).jobs[0]
    assert (job.id, job.gang.uid, job.gang.submitted, job.runtime) == ("1", "1", 0, 100)
    assert (job.gang.walltime, job.gang.user, job.gang.queue) == (200, "7", "2")
    assert [(role.min, role.most, role.request) for role in job.gang.roles] == [(4, 4, {"cpu": 1000})]


def test_unknown_size_and_time_fall_back_to_what_was_used() -> None:
    job = read_trace(str(DATA / "tiny.swf")).jobs[1]
    assert (job.gang.members, job.gang.walltime, job.gang.user, job.gang.queue) == (2, 50, "", "")


def test_the_request_counts_not_what_was_allocated_and_an_overrun_is_kept() -> None:
    job = read_trace(str(DATA / "tiny.swf")).jobs[2]
    assert (job.id, job.gang.members, job.runtime, job.gang.walltime) == ("4", 4, 90, 60)


def test_records_that_cannot_have_run_are_left_out_with_the_reason() -> None:
    workload = read_trace(str(DATA / "tiny.swf"))
    assert [job.id for job in workload.jobs] == ["1", "2", "4"]
    assert [line.split("tiny.swf, ")[1] for line in workload.skipped] == [
        "line 6: job 3 left out: its run time (column 4) is 0",
        "line 8: job 5 left out: it has no processors (columns 5 and 8)",
        "line 9: job 6 left out: it has no processors (columns 5 and 8)",
    ]


def test_partial_executions_stand_behind_their_summary(tmp_path: Path) -> None:
    part = GOOD.replace("200 -1 1 ", "200 -1 2 ")
    workload = read_trace(written(tmp_path, GOOD, part))
    assert len(workload.jobs) == 1
    assert "part of an execution" in workload.skipped[0]


def test_jobs_of_one_size_share_their_roles(tmp_path: Path) -> None:
    first, second = read_trace(written(tmp_path, GOOD, "2" + GOOD[1:])).jobs
    assert first.gang.roles is second.gang.roles


def test_a_file_out_of_submit_order_is_put_in_order_of_submit_time_and_number(tmp_path: Path) -> None:
    records = [GOOD.replace("1 0 5", f"{number} {submit} 5", 1) for number, submit in ((10, 7), (9, 7), (2, 3))]
    assert [job.id for job in read_trace(written(tmp_path, *records)).jobs] == ["2", "9", "10"]


def test_a_file_in_submit_order_keeps_its_order(tmp_path: Path) -> None:
    records = [GOOD.replace("1 0 5", f"{number} {submit} 5", 1) for number, submit in ((10, 7), (9, 7), (2, 8))]
    assert [job.id for job in read_trace(written(tmp_path, *records)).jobs] == ["10", "9", "2"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("1 0 5 100", "line 2: 4 fields; a record of the Standard Workload Format has 18"),
        (GOOD.replace("100", "soon"), "line 2: run time (column 4) is 'soon'; give a number, -1 if unknown"),
        (GOOD.replace(" 200", " nan"), "line 2: requested time (column 9) is 'nan'"),
        (GOOD.replace("4 200", "-8 200"), "line 2: requested processors (column 8) is -8; give at least 0"),
        (GOOD.replace("4 200", "9e9 200"), "line 2: the number of processors (columns 5 and 8) is not a whole number"),
        (GOOD.replace("4 200", "1.5 200"), "line 2: the number of processors (columns 5 and 8) is not a whole number"),
    ],
)
def test_a_malformed_record_is_one_line_naming_file_line_and_field(tmp_path: Path, record: str, message: str) -> None:
    path = written(tmp_path, record)
    with pytest.raises(UserError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}, {message}")
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(alphabet="0123456789.-+enaif;", min_size=1, max_size=6), min_size=18, max_size=18))
def test_whatever_the_fields_hold_it_is_a_job_a_reason_or_one_clear_line(fields: list[str]) -> None:
    from muster.sim.readers.source import Source
    from muster.sim.readers.swf import read

    try:
        workload = read(Source("x.swf", Path(), [" ".join(fields)]))
    except UserError as error:
        assert str(error).startswith("x.swf, line 1: ")
    else:
        comment = fields[0].startswith(";")
        assert len(workload.jobs) + len(workload.skipped) == (0 if comment else 1)


def test_the_archives_log_yields_the_jobs_the_golden_files_hold() -> None:
    raw = read_trace(str(traces() / "swf" / "KTH-SP2-1996.unfiltered.swf.gz"))
    golden = read_trace(str(traces() / "swf" / "KTH-SP2.pyss-easy.swf.gz"))
    assert len(raw.jobs) == len(golden.jobs) == 28481
    for mine, theirs in zip(raw.jobs, golden.jobs, strict=True):
        assert mine.id == theirs.id
        assert mine.gang.roles == theirs.gang.roles
        assert (mine.gang.submitted, mine.gang.walltime) == (theirs.gang.submitted, theirs.gang.walltime)
        assert min(mine.runtime, mine.gang.walltime or 0) == theirs.runtime
