"""What changed over time, in as many equal steps as a picture needs: capacity held, and jobs waiting."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.sim.metrics import Numbers
from muster.sim.outcome import History, Outcome
from muster.sim.workload import width


@dataclass(frozen=True, slots=True)
class Series:
    """Means over the time steps between `edges`; the clock starts at the first submission."""

    edges: Numbers
    busy: Numbers  # of 1
    waiting: Numbers  # jobs


def span(histories: Sequence[History]) -> tuple[float, float]:
    """From the first submission to the last end (or submission), so that several runs share one axis."""
    submitted = [o.job.gang.submitted for o in histories[0].outcomes]
    ends = [o.finished for history in histories for o in history.outcomes if o.finished is not None]
    return min(submitted), max(*ends, *submitted, min(submitted) + 1.0)


def series(history: History, steps: int, between: tuple[float, float]) -> Series:
    begin, end = between
    edges = np.linspace(begin, end, steps + 1)
    ran = [o for o in history.outcomes if o.started is not None and o.finished is not None]
    held = np.array([width(o.job.gang, history.unit) for o in ran], dtype=np.float64)
    busy = mean_level(_times(ran, "started"), _times(ran, "finished"), held, edges) / max(1, history.capacity)
    submitted = np.array([o.job.gang.submitted for o in history.outcomes], dtype=np.float64)
    left = np.array([end if o.started is None else o.started for o in history.outcomes], dtype=np.float64)
    waiting = mean_level(submitted, left, np.ones(len(submitted)), edges)
    return Series(edges - begin, busy, waiting)


def _times(outcomes: list[Outcome], field: str) -> Numbers:
    return np.array([getattr(outcome, field) for outcome in outcomes], dtype=np.float64)


def mean_level(starts: Numbers, ends: Numbers, amounts: Numbers, edges: Numbers) -> Numbers:
    """Mean of a sum of pulses over each step, exactly: the integral is linear between events."""
    times = np.concatenate([starts, ends])
    changes = np.concatenate([amounts, -amounts])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(changes[order])
    if not times.size:
        return np.zeros(len(edges) - 1)
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    means: Numbers = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
    return np.maximum(means, 0.0)
