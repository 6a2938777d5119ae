"""The figures of a run, against ones worked out by hand and against their definitions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.sim.metrics import Spread, measure, reasons
from muster.sim.workload import Workload
from tests.sim.fake import first_come, job

JOBS = (
    job("a", 0, 100, 4, deadline=100),
    job("b", 0, 50, 4, deadline=140),  # waits 100, ends at 150
    job("c", 10, 5, 8),  # waits 140, ends at 155
    job("d", 20, 5, 9, deadline=10_000),  # never fits
)


def test_the_figures_of_a_small_run() -> None:
    figures = measure(first_come(Workload("w", (JOBS[0], job("b", 0, 50, 8, deadline=140), *JOBS[2:])), 8))
    assert (figures.jobs, figures.started, figures.never_started) == (4, 3, 1)
    assert (figures.wait.mean, figures.wait.median, figures.wait.max) == (80, 100, 140)
    assert (figures.wait.p95, figures.wait.p99) == pytest.approx((136, 139.2))
    assert figures.slowdown.mean == pytest.approx((1 + 150 / 50 + 145 / 10) / 3)  # 5 s count as 10
    assert figures.completion.max == 150
    assert figures.makespan == 155
    assert figures.utilisation == pytest.approx((100 * 4 + 50 * 8 + 5 * 8) / (155 * 8))
    assert figures.goodput == figures.utilisation
    assert (figures.deadlines, figures.missed_deadlines) == (3, 2)


def test_work_done_again_is_not_goodput() -> None:
    history = first_come(Workload("w", JOBS[:1]), 4)
    history.outcomes[0].lost, history.outcomes[0].restarts = 25.0, 1
    figures = measure(history)
    assert (figures.utilisation, figures.goodput) == (1.0, 0.75)
    assert (figures.restarts, figures.lost) == (1, 100.0)


def test_a_run_in_which_nothing_starts_has_figures_too() -> None:
    history = first_come(Workload("w", JOBS[3:]), 8)
    figures = measure(history)
    assert (figures.wait, figures.utilisation, figures.makespan) == (Spread(), 0.0, 0.0)
    assert (figures.missed_deadlines, figures.never_started) == (1, 1)
    assert reasons(history) == [("needs 9 CPUs; the cluster has 8", 1)]
    assert json.loads(json.dumps(figures.as_dict()))["wait"]["mean"] == 0


SIZES = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 300), st.integers(1, 9)), min_size=1, max_size=30)


@given(SIZES)
def test_shares_are_shares_and_spreads_are_in_order(shapes: list[tuple[int, int, int]]) -> None:
    jobs = tuple(job(str(i), submit, run, size) for i, (submit, run, size) in enumerate(sorted(shapes)))
    figures = measure(first_come(Workload("w", jobs), 8))
    assert 0 <= figures.goodput <= figures.utilisation <= 1 + 1e-9
    assert 0 <= figures.wait.median <= figures.wait.p95 <= figures.wait.p99 <= figures.wait.max
    assert figures.slowdown.mean >= (1 if figures.started else 0)
    assert figures.started + figures.never_started == figures.jobs


def test_a_job_stuck_half_way_says_so() -> None:
    history = first_come(Workload("w", JOBS[3:]), 8)
    history.outcomes[0].nodes = (("machine", 5),)
    assert reasons(history) == [("holds the seats of 5 of its 9 members and waits for the rest for ever", 1)]
