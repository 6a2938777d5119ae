"""The files of a run, read back."""

import csv
import json
from pathlib import Path

import pytest

from muster.errors import UserError
from muster.sim import outputs
from muster.sim.workload import Workload
from tests.sim.fake import first_come, job, machine

JOBS = (
    job("a", 0, 100, 4),
    job("b", 0, 50.5, 8, walltime=60),
    job("c", 5, 90, 2, walltime=30),
    job("d", 9, 5, 9),
)


def test_jobs_are_written_with_the_column_names_of_evalys(tmp_path: Path) -> None:
    outputs.write(first_come(Workload("w", JOBS), 8), machine(8), tmp_path / "new" / "folder")
    with (tmp_path / "new" / "folder" / "jobs.csv").open() as file:
        first, second, killed, never = csv.DictReader(file)
    assert first == {
        "job_id": "a",
        "workload_name": "w",
        "profile": "",
        "submission_time": "0",
        "requested_number_of_resources": "4",
        "requested_time": "100",
        "success": "1",
        "starting_time": "0",
        "execution_time": "100",
        "finish_time": "100",
        "waiting_time": "0",
        "turnaround_time": "100",
        "stretch": "1",
        "allocated_resources": "0-3",
    }
    assert (second["starting_time"], second["finish_time"], second["allocated_resources"]) == (
        "100",
        "150.5",
        "0-7",
    )
    assert (killed["success"], killed["execution_time"]) == ("0", "30")
    assert (never["success"], never["starting_time"], never["allocated_resources"]) == ("0", "", "")


def test_the_summary_has_the_figures_and_the_reasons(tmp_path: Path) -> None:
    outputs.write(first_come(Workload("w", JOBS), 8), machine(8), tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["workload"], summary["policy"], summary["capacity"], summary["jobs"]) == (
        "w",
        "fcfs",
        8,
        4,
    )
    assert summary["never_started_reasons"] == {"needs 9 CPUs; the cluster has 8": 1}
    assert summary["wait"]["max"] == pytest.approx(145.5)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        outputs.make_folder(tmp_path / "file" / "below")
