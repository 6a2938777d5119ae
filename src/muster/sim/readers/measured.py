"""Run times from what Pollux measured: step times by placement, and training runs by batch size.

    run time = iterations(B) x (step + a x (step - sync))

n replicas fill nodes of 4 GPUs. Each takes a share b = ceil(B / n) of the batch; where b is more than was
measured to fit a GPU, it is cut into a + 1 parts, all but the last without synchronisation (a single
replica that trains above the application's base batch size accumulates at least once). `step` and `sync`
are measured for that placement, interpolated linearly over the part's size; above 16 replicas (4 full
nodes) linearly over the replicas of whole nodes measured. `iterations` is where the recorded training run
at batch size B ends, linear between the two recorded sizes around B. Time lost to restarts and interference
is not part of it.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from muster.sim.readers.source import open_source
from muster.sim.readers.table import Row, rows

_PER_NODE = 4
_PLACED = 16
_LARGEST_SHARE = {"yolov3": 8.0}
"""Pollux trains this model with at most so many samples per GPU, though more were measured in places."""

_Curve = tuple[list[float], list[float], list[float]]  # part sizes, ascending; their step and sync times
_Points = dict[int, dict[float, tuple[float, float]]]  # by replicas and part size: step and sync times


@dataclass(frozen=True, slots=True)
class Application:
    """One model's measurements: curves by number of replicas, iterations to the end by batch size."""

    curves: dict[int, _Curve]
    iterations: dict[int, float]

    def runtime(self, replicas: int, batch: int) -> float:
        """Seconds to the end of training. ValueError where nothing near it was measured."""
        if replicas > max(self.curves):
            raise ValueError(f"measurements end at {max(self.curves)} replicas")
        if replicas in self.curves:
            return self._iterations(batch) * self._step(replicas, batch, replicas)
        sizes = list(self.curves)
        above = bisect_left(sizes, replicas)
        ends = sizes[above - 1], sizes[above]
        steps = [self._step(replicas, batch, end) for end in ends]
        return self._iterations(batch) * float(np.interp(replicas, ends, steps))

    def _step(self, replicas: int, batch: int, measured_at: int) -> float:
        parts, steps, syncs = self.curves[measured_at]
        share = math.ceil(batch / replicas)
        extra = math.ceil(share / parts[-1]) - 1
        if replicas == 1 and batch > min(self.iterations):
            extra = max(1, extra)
        part = math.ceil(share / (extra + 1))
        step, sync = float(np.interp(part, parts, steps)), float(np.interp(part, parts, syncs))
        return step + extra * (step - sync)

    def _iterations(self, batch: int) -> float:
        sizes = list(self.iterations)
        if not sizes[0] <= batch <= sizes[-1]:
            raise ValueError(f"training was recorded for a batch size of {sizes[0]} to {sizes[-1]}")
        return float(np.interp(batch, sizes, list(self.iterations.values())))


def load(folder: Path) -> Application:
    """Read an application's folder: placements.csv, scalability.csv, validation-B.csv per batch size."""
    points: _Points = {}
    for row in rows(open_source(str(folder / "placements.csv"))):
        placement = row.text("placement")
        replicas = sum(int(digit) for digit in placement if digit.isdigit())
        if placement == _packed(replicas):
            _add(points, replicas, row)
    for row in rows(open_source(str(folder / "scalability.csv"))):
        replicas = row.whole("num_replicas", least=1)
        if replicas > _PLACED and replicas == _PER_NODE * row.whole("num_nodes"):
            _add(points, replicas, row)
    most = _LARGEST_SHARE.get(folder.name, math.inf)
    curves = {replicas: _curve(points[replicas], most) for replicas in sorted(points)}
    return Application(curves, _recorded(folder))


def _packed(replicas: int) -> str:
    """How Pollux names the placement of so many replicas on as few nodes as possible."""
    full, rest = divmod(replicas, _PER_NODE)
    return (str(rest) if rest else "") + str(_PER_NODE) * full


def _add(points: _Points, replicas: int, row: Row) -> None:
    times = row.positive("step_time"), row.number("sync_time")
    points.setdefault(replicas, {})[row.positive("local_bsz")] = times


def _curve(measured: dict[float, tuple[float, float]], most: float) -> _Curve:
    parts = sorted(part for part in measured if part <= most)
    return parts, [measured[part][0] for part in parts], [measured[part][1] for part in parts]


def _recorded(folder: Path) -> dict[int, float]:
    """Iterations to the last epoch that all recorded runs reached."""
    runs = {
        int(path.stem.split("-")[1]): [row.positive("iteration") for row in rows(open_source(str(path)))]
        for path in folder.glob("validation-*.csv")
    }
    last = min(len(run) for run in runs.values()) - 1
    return {batch: runs[batch][last] for batch in sorted(runs)}
