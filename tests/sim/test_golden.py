"""Equality, job by job, with published results: the same planning core, on the order of events they came from."""

import gzip
from pathlib import Path

import pytest

from muster.model.node import Node
from muster.sim.engine import simulate
from muster.sim.readers.formats import read_trace
from muster.sim.workload import CPU, PER_UNIT
from tests.sim.traces import traces

# policy, the tag of its golden files, and whether it is told true run times
POLICIES = {
    "fcfs": ("fcfs", "fcfs", False),
    "easy": ("easy", "easy", False),
    "easy clairvoyant": ("easy", "easy_clairvoyant", True),
    "easy-sjbf clairvoyant": ("easy-sjbf", "easypp_sjbf_clairvoyant", True),
    "conservative": ("conservative", "cons", False),
}
MACHINES = {"KTH": 100, "SDSC": 128}


def flat(processors: int, nodes: int) -> list[Node]:
    """One machine, cut into equal nodes."""
    each = {CPU: processors // nodes * PER_UNIT[CPU]}
    return [Node(f"n{number}", each) for number in range(nodes)]


def golden_waits(path: Path) -> dict[str, float]:
    """Column 3 of the simulator's output: how long each job waited."""
    rows = (line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines())
    return {row[0]: float(row[2]) for row in rows if row and not row[0].startswith(";")}


def mismatches(machine: str, name: str, nodes: int) -> list[tuple[str, float, float | None]]:
    policy, tag, clairvoyant = POLICIES[name]
    path = traces() / "swf" / f"{machine}-SP2.pyss-{tag}.swf.gz"
    if not path.exists():
        pytest.skip(f"there is no golden file {path}")
    workload = read_trace(str(path))
    history = simulate(
        workload, flat(MACHINES[machine], nodes), policy=policy, clairvoyant=clairvoyant, tie_break="pyss"
    )
    waits = golden_waits(path)
    assert len(history.outcomes) == len(waits)
    return [
        (each.job.id, waits[each.job.id], each.started)
        for each in history.outcomes
        if each.started is None or each.started - each.job.gang.submitted != waits[each.job.id]
    ]


@pytest.mark.parametrize("nodes", [1, 100])
@pytest.mark.parametrize("name", POLICIES)
def test_kth_job_by_job(name: str, nodes: int) -> None:
    assert mismatches("KTH", name, nodes) == []


@pytest.mark.parametrize("name", ["easy", "easy-sjbf clairvoyant"])
def test_sdsc_job_by_job(name: str) -> None:
    assert mismatches("SDSC", name, 128) == []


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 128])
@pytest.mark.parametrize("name", ["easy", "easy clairvoyant", "easy-sjbf clairvoyant", "conservative"])
def test_sdsc_job_by_job_in_full(name: str, nodes: int) -> None:
    assert mismatches("SDSC", name, nodes) == []
