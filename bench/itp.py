"""Policies on a real GPU trace: ten Microsoft clusters, 69,351 jobs, as tables for docs/gpu-trace.md.

    python -m bench.itp elasticflow-traces.tar.gz

The trace does not say how large the clusters were. Each is given nodes of 8 GPUs, the fewest that its work would
fill to 75 % if it were spread evenly over the trace, and that hold its largest job.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np

from muster.model.node import Node
from muster.sim.engine import simulate
from muster.sim.metrics import Metrics, Numbers, measure, waits
from muster.sim.readers.formats import read_trace
from muster.sim.words import count, duration, percent, ratio
from muster.sim.workload import GPU, Workload, width

POLICIES = ("fcfs", "easy", "easy-sjbf", "easy:wfp3", "easy:unicef", "easy:sjf", "conservative")
CLUSTERS = range(1, 11)
PER_NODE = 8
LOAD = 0.75


@dataclass(frozen=True, slots=True)
class Run:
    figures: Metrics
    waits: Numbers
    room: float  # GPU-seconds between the first submission and the last end


def main(archive: str) -> None:
    runs: dict[str, list[Run]] = {policy: [] for policy in POLICIES}
    sizes = []
    for number in CLUSTERS:
        workload = read_trace(f"{archive}:{number}")
        nodes = machine(workload)
        sizes.append((number, len(workload.jobs), len(nodes) * PER_NODE))
        for policy in POLICIES:
            runs[policy].append(run(workload, nodes, policy))
            print(f"cluster {number}, {policy}: {duration(runs[policy][-1].figures.wait.mean)}", file=sys.stderr)
    print("\n".join([*overall(runs), "", *by_cluster(runs, sizes)]))


def machine(workload: Workload) -> list[Node]:
    submitted = [job.gang.submitted for job in workload.jobs]
    work = sum(job.runtime * width(job.gang, GPU) for job in workload.jobs)
    even = work / (max(submitted) - min(submitted)) / LOAD
    widest = max(width(job.gang, GPU) for job in workload.jobs)
    return [Node(f"node-{i}", {GPU: PER_NODE}) for i in range(math.ceil(max(even, widest) / PER_NODE))]


def run(workload: Workload, nodes: list[Node], policy: str) -> Run:
    history = simulate(workload, nodes, policy=policy, clairvoyant=True)
    figures = measure(history)
    return Run(figures, waits(history), figures.makespan * history.capacity)


def overall(runs: dict[str, list[Run]]) -> list[str]:
    lines = ["| policy | mean wait | median | p95 | p99 | max | bounded slowdown | in use |", "|---" * 8 + "|"]
    for policy, each in runs.items():
        together = np.concatenate([one.waits for one in each])
        spread = [together.mean(), *np.percentile(together, [50, 95, 99]), together.max()]
        slowdown = sum(one.figures.slowdown.mean * len(one.waits) for one in each) / len(together)
        used = sum(one.figures.utilisation * one.room for one in each) / sum(one.room for one in each)
        cells = [policy, *(duration(float(value)) for value in spread), ratio(slowdown), percent(used)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def by_cluster(runs: dict[str, list[Run]], sizes: list[tuple[int, int, int]]) -> list[str]:
    lines = [f"| cluster | jobs | GPUs | {' | '.join(runs)} |", "|---" * (3 + len(runs)) + "|"]
    for index, (number, jobs, gpus) in enumerate(sizes):
        means = (duration(each[index].figures.wait.mean) for each in runs.values())
        lines.append(f"| {number} | {count(jobs)} | {count(gpus)} | {' | '.join(means)} |")
    return lines


if __name__ == "__main__":
    main(sys.argv[1])
