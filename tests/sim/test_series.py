"""Curves over time, against the exact means they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.sim.metrics import measure
from muster.sim.series import series, span
from muster.sim.workload import Workload
from tests.sim.fake import first_come, job

SHAPES = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 99), st.integers(1, 8)), min_size=1, max_size=30)


def test_steps_hold_exact_means() -> None:
    history = first_come(Workload("w", (job("a", 100, 50, 4), job("b", 100, 50, 8))), 8)
    data = series(history, 4, span([history]))
    assert data.edges.tolist() == [0, 25, 50, 75, 100]
    assert data.busy.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert data.waiting.tolist() == [1, 1, 0, 0]


@given(SHAPES, st.integers(1, 50))
def test_the_area_under_the_curve_is_the_work_done(shapes: list[tuple[int, int, int]], steps: int) -> None:
    jobs = tuple(job(str(i), submit, run, size) for i, (submit, run, size) in enumerate(sorted(shapes)))
    history = first_come(Workload("w", jobs), 8)
    data = series(history, steps, span([history]))
    assert data.busy.mean() == pytest.approx(measure(history).utilisation)
    waited = sum((o.started or 0) - o.job.gang.submitted for o in history.outcomes)
    assert float((data.waiting * np.diff(data.edges)).sum()) == pytest.approx(waited, abs=1e-6)


def test_a_job_that_never_starts_waits_to_the_end() -> None:
    history = first_come(Workload("w", (job("a", 0, 10, 4), job("b", 0, 1, 99))), 8)
    assert series(history, 2, span([history])).waiting.tolist() == [1, 1]


def test_a_run_in_which_nothing_happens_has_curves_too() -> None:
    history = first_come(Workload("w", (job("b", 7, 1, 99),)), 8)
    data = series(history, 2, span([history]))
    assert (data.busy.tolist(), data.waiting.tolist()) == ([0, 0], [1, 1])
