"""The ten GPU clusters of the Microsoft ITP trace under each policy, as the table in docs/gpu-traces.md.

    python -m bench.gpu_traces ARCHIVE.tar.gz > table.md

The trace tells the jobs of each cluster and not its size, so each gets as many 8-GPU nodes as make its mean demand
LOAD of its GPUs, and at least enough for its widest gang. It has no time limits either: the scheduler is told the
run times (`clairvoyant`), except under the policies that do not look at them.
"""

import sys
from collections.abc import Iterator
from math import ceil

import numpy as np

from muster.model.node import Node
from muster.sim.engine import simulate
from muster.sim.outcome import History
from muster.sim.readers.formats import read_trace
from muster.sim.workload import GPU, Workload, width

LOAD = 0.8
PER_NODE = 8
POLICIES = ("pods", "fcfs", "easy", "easy-sjbf", "easy:wfp3", "easy:unicef", "easy:sjf", "conservative")
HOUR = 3600.0
BOUND = 10.0
CLUSTERS = 10


def main(archive: str) -> None:
    rows: dict[str, list[History]] = {policy: [] for policy in POLICIES}
    print(f"| cluster | jobs | GPUs | {' | '.join(POLICIES)} |")
    print("|---|---|---|" + "---|" * len(POLICIES))
    for number in range(1, CLUSTERS + 1):
        workload = read_trace(f"{archive}:cluster{number:02d}.csv")
        nodes = machine(workload)
        cells = []
        for policy in POLICIES:
            history = simulate(workload, nodes, policy=policy, clairvoyant=True)
            rows[policy].append(history)
            cells.append(cell(history))
        print(f"| {number} | {len(workload.jobs):,} | {len(nodes) * PER_NODE} | {' | '.join(cells)} |", flush=True)
    print("\n| policy | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
    for policy, histories in rows.items():
        print(f"| {policy} | {' | '.join(overall(histories))} |")


def machine(workload: Workload) -> list[Node]:
    gpus = [width(job.gang, GPU) for job in workload.jobs]
    submits = [job.gang.submitted for job in workload.jobs]
    work = sum(job.runtime * wide for job, wide in zip(workload.jobs, gpus, strict=True))
    span = max(submits) - min(submits)
    wanted = max(work / span / LOAD, *gpus)
    return [Node(f"node-{i}", {GPU: PER_NODE}) for i in range(ceil(wanted / PER_NODE))]


def waits(history: History) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([o.started - o.job.gang.submitted for o in history.outcomes if o.started is not None])


def cell(history: History) -> str:
    """Mean and 99th percentile of waiting, in hours; and who never started."""
    never = sum(outcome.started is None for outcome in history.outcomes)
    if never:
        return f"deadlock: {never:,} never start"
    found = waits(history)
    return f"{found.mean() / HOUR:.2f} / {np.percentile(found, 99) / HOUR:.1f}"


COLUMNS = ("never started", "mean wait h", "p99 wait h", "max wait h", "mean bounded slowdown", "mean completion h")


def overall(histories: list[History]) -> Iterator[str]:
    """All clusters' jobs together."""
    started = [o for h in histories for o in h.outcomes if o.started is not None and o.finished is not None]
    wait = np.array([o.started - o.job.gang.submitted for o in started if o.started is not None])
    run = np.array([o.finished - o.started for o in started if o.finished is not None and o.started is not None])
    slowdown = np.maximum((wait + run) / np.maximum(run, BOUND), 1.0)
    yield f"{sum(len(h.outcomes) for h in histories) - len(started):,}"
    for value in (wait.mean(), np.percentile(wait, 99), wait.max()):
        yield f"{value / HOUR:,.2f}"
    yield f"{slowdown.mean():,.1f}"
    yield f"{(wait + run).mean() / HOUR:,.2f}"


if __name__ == "__main__":
    main(sys.argv[1])
