"""`muster sim` and `muster sim compare` as a user runs them."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from muster.cli.main import main
from muster.cli.simtables import spark
from tests.sim.traces import traces

DATA = Path(__file__).parent.parent / "sim" / "data"
PLAIN = str(DATA / "plain.csv")
CLUSTER = str(DATA / "cluster.yaml")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open() as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


def test_a_run_prints_its_figures_and_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", PLAIN, "--policy", "easy", "--procs", "16", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "plain under easy · 3 jobs · 16 GPUs in one node" in printed
    for word in ("wait", "bounded slowdown", "utilisation", "goodput", "makespan", "missed deadlines", "p99"):
        assert word in printed
    assert set(rows(tmp_path / "jobs.csv")) == {"small", "wide", "elastic"}
    assert json.loads((tmp_path / "summary.json").read_text())["policy"] == "easy"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_the_trace_may_bring_its_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", str(DATA / "tiny.swf")]) == 0
    printed = capsys.readouterr().out
    assert "3 jobs · 8 CPUs in one node" in printed
    assert "3 records left out; the first: " in printed


def test_a_gang_that_never_fits_is_reported_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", PLAIN, "--procs", "8", "--out", str(tmp_path)]) == 0
    assert "never started: 1 x " in capsys.readouterr().out
    jobs = rows(tmp_path / "jobs.csv")
    assert jobs["wide"]["starting_time"] == ""
    assert jobs["small"]["starting_time"] == "0"


def test_policies_are_compared_in_one_table_and_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sim", "compare", PLAIN, "--policies", "fcfs,easy:wfp3,pods,fcfs", "--procs", "16"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:5]] == ["fcfs", "easy:wfp3", "pods"]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("compare.html", "compare.json"),
        *("fcfs", "easy-wfp3", "pods"),
    }
    assert len(json.loads((tmp_path / "compare.json").read_text())) == 3


def test_the_exact_run_times_can_be_told(tmp_path: Path) -> None:
    """A job that asked for too long passes the one before it once its real end is known to come in time."""
    trace = tmp_path / "t.csv"
    head = "job_id,submit,duration,gpus,walltime"
    trace.write_text(f"{head}\nlong,0,1000,6,1000\nhead,1,10,8,10\nshort,2,900,2,5000\n")
    waits = []
    for more in ([], ["--clairvoyant"]):
        assert main(["sim", str(trace), "--procs", "8", "--out", str(tmp_path / "o"), *more]) == 0
        waits.append(rows(tmp_path / "o" / "jobs.csv")["short"]["waiting_time"])
    assert waits == ["1008", "0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.swf", "--procs", "4"], "absent.swf: no such file"),
        ([PLAIN], "give --procs N or --cluster FILE"),
        ([PLAIN, "--procs", "0"], "--procs 0: give at least 1"),
        ([PLAIN, "--procs", "4", "--cluster", CLUSTER], "not allowed with argument"),
        ([PLAIN, "--procs", "4", "--policy", "magic"], "no policy 'magic'; there are fcfs, easy, easy-sjbf"),
        ([PLAIN, "--procs", "4", "--policy", "easy:luck"], "no order 'luck'"),
        ([PLAIN, "--procs", "4", "--policies", "easy"], "compare takes --policies"),
        (["compare", PLAIN, "--procs", "4", "--policy", "easy"], "compare takes --policies"),
        (["compare", "--procs", "4"], "compare what?"),
        ([PLAIN, PLAIN, "--procs", "4"], "is one too many"),
        (
            [PLAIN, "--procs", "4", "--tie-break", "coin"],
            "--tie-break coin: no such order; there are batch, pyss",
        ),
        ([PLAIN, "--procs", "4", "--limit", "0"], "give at least 1"),
        (["compare", PLAIN, "--procs", "4", "--policies", "easy,magic"], "no policy 'magic'"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *words]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("muster sim: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_cluster_file_places_jobs_on_its_nodes(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("job_id,submit,duration,cpus,required\na,0,10,3,rack\n")
    assert main(["sim", str(trace), "--cluster", CLUSTER, "--out", str(tmp_path)]) == 0
    assert rows(tmp_path / "jobs.csv")["a"]["finish_time"] == "10"


def test_a_trace_without_limits_says_what_that_means(capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in ([], True), (["--clairvoyant"], False):
        assert main(["sim", str(DATA / "itp.csv"), "--procs", "32", *more]) == 0
        assert ("states no time limits" in capsys.readouterr().out) is said


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("fcfs", ["fcfs"]),
        ("easy", ["easy"]),
        ("cons", ["conservative"]),
        ("easy_clairvoyant", ["easy", "--clairvoyant"]),
        ("easypp_sjbf_clairvoyant", ["easy-sjbf", "--clairvoyant"]),
    ],
)
def test_published_results_are_met_job_by_job(tmp_path: Path, tag: str, words: list[str]) -> None:
    golden = traces() / "swf" / f"KTH-SP2.pyss-{tag}.swf.gz"
    words = ["sim", str(golden), "--procs", "100", "--tie-break", "pyss", "--out", str(tmp_path), "--policy", *words]
    assert main(words) == 0
    with gzip.open(golden, "rt") as file:
        records = [line.split() for line in file if not line.startswith(";")]
    waits = {record[0]: record[2] for record in records}
    assert waits == {name: row["waiting_time"] for name, row in rows(tmp_path / "jobs.csv").items()}


def test_the_slowdown_is_the_published_one(tmp_path: Path) -> None:
    """From the raw log, which also shows that what is left out of it is what the published simulation left out."""
    raw = traces() / "swf" / "KTH-SP2-1996.unfiltered.swf.gz"
    assert main(["sim", str(raw), "--policy", "easy", "--tie-break", "pyss", "--out", str(tmp_path)]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["jobs"], summary["capacity"]) == (28481, 100)
    assert round(summary["slowdown"]["mean"], 3) == 92.577
    assert round(summary["wait"]["mean"], 1) == 6836.9


def test_a_spark_shows_anything_above_nothing() -> None:
    import numpy as np

    assert spark(np.array([0, 0.001, 0.5, 1.0, 1.2]), 1.0) == " ▁▄██"
    assert spark(np.array([0.0]), 0.0) == " "
