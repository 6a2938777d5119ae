"""The simulator on the archive's KTH log, beside the simulator its golden answers came from.

The peer's times, 2.6 s and 8.9 s, were read on a machine of this kind; where its checkout is at hand
(MUSTER_PEER_PYSS: a command that takes trace, config and output), it is run in the same minute instead.
"""

import gzip
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

from bench.measure import Measure, repeated
from muster.model.node import Node
from muster.sim.engine import simulate
from muster.sim.readers.formats import read_trace
from muster.sim.workload import Workload

TRACES = Path(os.environ.get("MUSTER_TRACES", "../shared/traces"))
PROCESSORS = 100


def run() -> list[Measure]:
    log = TRACES / "swf" / "KTH-SP2.pyss-easy.swf.gz"
    if not log.exists():
        print(f"no trace at {log}: set MUSTER_TRACES to the folder of traces")
        return []
    workload = read_trace(str(log))
    return [
        _measure(workload, log, "easy", "easy_backfill_scheduler", 1.0, 2.6),
        _measure(workload, log, "conservative", "conservative_scheduler", 3.0, 8.9),
    ]


def _measure(workload: Workload, log: Path, policy: str, peer: str, at_most: float, peer_seconds: float) -> Measure:
    nodes = [Node("machine", {"cpu": PROCESSORS * 1000})]
    seconds = repeated(lambda: simulate(workload, nodes, policy=policy, tie_break="pyss").seconds)
    command = os.environ.get("MUSTER_PEER_PYSS")
    measured = repeated(lambda: _peer(command, log, peer), 3) if command else peer_seconds
    return Measure(f"KTH under {policy}, 28,481 jobs", seconds, "s", at_most=at_most, peer=measured, peer_name="pyss")


def _peer(command: str, log: Path, scheduler: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        trace, config = Path(folder, "log.swf"), Path(folder, "config")
        trace.write_bytes(gzip.decompress(log.read_bytes()))
        options = {"name": scheduler, "predictor": {"name": None}, "corrector": {"name": None}, "progressbar": False}
        config.write_text(f"scheduler = {options}\nnum_processors = {PROCESSORS}\nstats = False\n")
        began = perf_counter()
        words = [*shlex.split(command), str(trace), str(config), str(Path(folder, "out"))]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return perf_counter() - began
