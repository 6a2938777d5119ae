"""How fast pods of Jobs are made, started and ended on simulated nodes, by the CPU time of everything but the socket.

API, store in memory, all controllers and a thousand simulated nodes in one process, on a clock that does not wait:
what limits the rates is work alone. The scheduler's part is played by plain bindings.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

from bench.measure import Measure
from muster.local.api import bootstrap
from muster.local.api.cluster import Cluster
from muster.local.api.inprocess import InProcess
from muster.local.api.options import Options
from muster.local.api.verbs import bind
from muster.local.clock import VirtualClock
from muster.local.controllers.running import Running, start_controllers
from muster.local.nodes.running import start_nodes
from muster.local.nodes.template import NodeTemplate
from muster.local.store import Store

NODES, JOBS, WORKERS = 1000, 10, 300
_CALM = 5


def run() -> list[Measure]:
    return asyncio.run(_run())


async def _run() -> list[Measure]:
    store, clock = Store(None), VirtualClock(time.time())
    cluster = Cluster(store)
    bootstrap.prepare(cluster)
    api = InProcess(cluster)
    controllers = start_controllers(api, clock)
    nodes = start_nodes(api, [NodeTemplate(count=NODES)], clock, root=Path("unused"))
    for number in range(JOBS):
        api.create("batch/jobs", job(f"job-{number}"), "default")
    pods = JOBS * WORKERS
    made = await _timed(store, clock, controllers, 20.0)
    places = itertools.cycle(f"node-{i}" for i in range(NODES))
    for pod, node in zip(api.list("pods"), places, strict=False):
        bind(cluster, "default", pod["metadata"]["name"], {"target": {"kind": "Node", "name": node}}, Options())
    started = await _timed(store, clock, controllers, 20.0)
    ended = await _timed(store, clock, controllers, 100.0)
    done = sum(found["status"].get("succeeded", 0) for found in api.list("batch/jobs"))
    await nodes.stop()
    await controllers.stop()
    store.close()
    if done != pods:
        raise RuntimeError(f"{done} of {pods} pods were counted as succeeded")
    what = f"{JOBS} Indexed Jobs of {WORKERS} pods, {NODES} simulated nodes: pods"
    rates = {"made": made, "started": started, "ended and counted": ended}
    return [Measure(f"{what} {word}", pods / seconds, "/s CPU") for word, seconds in rates.items()]


def job(name: str) -> dict[str, Any]:
    notes = {"muster.sh/sim-run-time": "60s"}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": WORKERS, "completions": WORKERS, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def _timed(store: Store, clock: VirtualClock, controllers: Running, seconds: float) -> float:
    """Let time pass until nothing is left to do; the CPU time that took."""
    before, until = time.process_time(), clock.now() + seconds
    await _settle(store, controllers)
    while clock.step(until):
        await _settle(store, controllers)
    return time.process_time() - before


async def _settle(store: Store, controllers: Running) -> None:
    calm = 0
    while calm < _CALM:
        before = store.revision
        await asyncio.sleep(0)
        calm = calm + 1 if controllers.idle and store.revision == before else 0
