"""The figures of a run: how long jobs waited, how full the cluster was, and what went wrong.

Bounded slowdown is max(1, (wait + run) / max(run, 10 s)), averaged over jobs. Utilisation is what jobs held
of capacity x makespan, where the makespan goes from the first submission to the last end; goodput is the
same without the work that was done again. Waits and times count the jobs that started.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from muster.sim.outcome import History, Outcome
from muster.sim.workload import width

SLOWDOWN_BOUND = 10.0

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is spread over jobs; all zero where there are none."""

    mean: float = 0.0
    median: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    max: float = 0.0


@dataclass(frozen=True, slots=True)
class Metrics:
    policy: str
    jobs: int
    started: int
    never_started: int
    wait: Spread  # seconds
    slowdown: Spread
    completion: Spread  # seconds from submission to end
    utilisation: float  # of 1
    goodput: float  # of 1
    makespan: float  # seconds
    deadlines: int
    missed_deadlines: int
    backfilled: int
    restarts: int
    lost: float  # seconds of work done again, times what was held

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def spread(values: Numbers) -> Spread:
    if not len(values):
        return Spread()
    median, p95, p99 = np.percentile(values, [50, 95, 99])
    return Spread(float(values.mean()), float(median), float(p95), float(p99), float(values.max()))


def waits(history: History) -> Numbers:
    """Seconds each started job waited, in file order."""
    return np.array(
        [o.started - o.job.gang.submitted for o in history.outcomes if o.started is not None],
        dtype=np.float64,
    )


def measure(history: History) -> Metrics:
    ended = [o for o in history.outcomes if o.started is not None and o.finished is not None]
    submitted = _column(ended, lambda o: o.job.gang.submitted)
    started = _column(ended, lambda o: o.started or 0.0)
    finished = _column(ended, lambda o: o.finished or 0.0)
    held = _column(ended, lambda o: width(o.job.gang, history.unit))
    lost = _column(ended, lambda o: o.lost)
    run, wait = finished - started, waits(history)
    slowdown = np.maximum(1.0, (finished - submitted) / np.maximum(run, SLOWDOWN_BOUND))
    makespan = float(finished.max()) - _first_submission(history) if ended else 0.0
    room = history.capacity * makespan or 1.0
    due = [o for o in history.outcomes if o.job.gang.deadline is not None]
    return Metrics(
        policy=history.policy,
        jobs=len(history.outcomes),
        started=len(wait),
        never_started=len(history.outcomes) - len(wait),
        wait=spread(wait),
        slowdown=spread(slowdown),
        completion=spread(finished - submitted),
        utilisation=float((run * held).sum()) / room,
        goodput=float(((run - lost) * held).sum()) / room,
        makespan=makespan,
        deadlines=len(due),
        missed_deadlines=sum(_missed(o) for o in due),
        backfilled=sum(o.backfilled for o in history.outcomes),
        restarts=sum(o.restarts for o in history.outcomes),
        lost=float((lost * held).sum()),
    )


def reasons(history: History) -> list[tuple[str, int]]:
    """Why jobs never started, the commonest reason first."""
    counts: dict[str, int] = {}
    for outcome in history.outcomes:
        if outcome.started is None:
            reason = _why(outcome)
            counts[reason] = counts.get(reason, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


def _why(outcome: Outcome) -> str:
    if outcome.nodes:
        held, needed = sum(members for _, members in outcome.nodes), outcome.job.gang.members
        return f"holds the seats of {held} of its {needed} members and waits for the rest for ever"
    return outcome.reason or "waits behind jobs that never end"


def _column(outcomes: list[Outcome], value: Callable[[Outcome], float]) -> Numbers:
    return np.array([value(outcome) for outcome in outcomes], dtype=np.float64)


def _first_submission(history: History) -> float:
    return min(outcome.job.gang.submitted for outcome in history.outcomes)


def _missed(outcome: Outcome) -> bool:
    deadline = outcome.job.gang.deadline
    return deadline is not None and (outcome.finished is None or outcome.finished > deadline)
