"""Files other tools read: jobs.csv with the column names of evalys, and summary.json."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from muster.errors import UserError
from muster.model.node import Node
from muster.sim.metrics import measure, reasons
from muster.sim.outcome import History, Outcome
from muster.sim.slots import Range, Slots, assign, interval_set

COLUMNS = (
    *(
        "job_id",
        "workload_name",
        "profile",
        "submission_time",
        "requested_number_of_resources",
        "requested_time",
    ),
    *(
        "success",
        "starting_time",
        "execution_time",
        "finish_time",
        "waiting_time",
        "turnaround_time",
        "stretch",
    ),
    "allocated_resources",
)


def write_jobs(history: History, slots: Slots, path: Path) -> None:
    """One line per job in file order; a job that never started has empty times."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for outcome, ranges in zip(history.outcomes, slots.held, strict=True):
            writer.writerow(_line(history, outcome, slots.asked(outcome), ranges))


def write_summary(history: History, path: Path) -> None:
    path.write_text(json.dumps(_summary(history), indent=2) + "\n")


def write_comparison(histories: Sequence[History], path: Path) -> None:
    path.write_text(json.dumps([_summary(history) for history in histories], indent=2) + "\n")


def _summary(history: History) -> dict[str, object]:
    return {
        "workload": history.workload.name,
        "tie_break": history.tie_break,
        "capacity": history.capacity,
        "unit": history.unit,
        **measure(history).as_dict(),
        "never_started_reasons": dict(reasons(history)),
        "records_left_out": len(history.workload.skipped),
        "cycles": history.cycles,
        "actions": history.actions,
        "seconds": history.seconds,
    }


def write(history: History, nodes: Sequence[Node], folder: Path) -> Slots:
    """Write both files into the folder, which is made if need be, and hand back the slots they list."""
    make_folder(folder)
    slots = assign(history, nodes)
    write_jobs(history, slots, folder / "jobs.csv")
    write_summary(history, folder / "summary.json")
    return slots


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be made: {error.strerror}") from None


def _line(history: History, outcome: Outcome, asked: int, ranges: tuple[Range, ...]) -> list[str]:
    gang = outcome.job.gang
    fixed = [outcome.job.id, history.workload.name, gang.name, _text(gang.submitted)]
    fixed += [str(asked), "" if gang.walltime is None else _text(gang.walltime)]
    if outcome.started is None or outcome.finished is None:
        return [*fixed, "0", *[""] * (len(COLUMNS) - len(fixed) - 1)]
    run, turnaround = outcome.finished - outcome.started, outcome.finished - gang.submitted
    times = (outcome.started, run, outcome.finished, outcome.started - gang.submitted, turnaround)
    stretch = turnaround / run if run else 1.0
    whole = gang.walltime is None or outcome.job.runtime <= gang.walltime
    return [*fixed, str(int(whole)), *map(_text, times), _text(stretch), interval_set(ranges)]


def _text(value: float) -> str:
    """Whole seconds without a fraction, as every trace has them."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
