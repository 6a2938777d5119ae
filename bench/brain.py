"""The brain by itself: what a cycle costs, and how that grows with nodes and with the queue."""

import random
from collections.abc import Callable
from statistics import median
from time import perf_counter

from bench.measure import Measure, repeated
from muster.model.gang import Gang, Role, Running, Seats
from muster.model.node import Node
from muster.model.rules import Taint
from muster.model.topology import Closeness, Parallelism, Topology
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.state import State

GIB = 1 << 30
LEVELS = Topology(("zone", "block", "rack"))
EASY = parse("easy")
RACK = Closeness(preferred="rack")


def run() -> list[Measure]:
    return [
        Measure("gang of 10,000 pods, tp=8, on 10,000 nodes", repeated(one_large_gang) * 1e3, "ms", at_most=20),
        Measure("10,000 gangs of 10 on 5,000 nodes", 1 / repeated(standing_queue), "pods/s", at_least=200_000),
        Measure("1,000 hopeless gangs, added to a cycle", repeated(hopeless) * 1e3, "ms", at_most=1),
        *growth("nodes", (1_000, 2_000, 4_000, 8_000, 16_000), lambda n: cycle_time(n, 1_000)),
        *growth("queued gangs", (1_000, 4_000, 16_000, 64_000), lambda n: cycle_time(2_000, n)),
    ]


def cluster(count: int, per_rack: int = 40) -> list[Node]:
    """Racks of 40, blocks of 8 racks, zones of 8 blocks; 8 GPUs to a node."""
    capacity = {"cpu": 128_000, "memory": 2048 * GIB, "nvidia.com/gpu": 8, "pods": 110}
    return [
        Node(
            f"node-{i}",
            capacity,
            {"zone": f"z{i // (per_rack * 64)}", "block": f"b{i // (per_rack * 8)}", "rack": f"r{i // per_rack}"},
        )
        for i in range(count)
    ]


def worker(count: int, gpus: int, cpu: int, memory: int) -> Role:
    request = {"cpu": cpu, "memory": memory * GIB, "pods": 1}
    return Role("worker", count, request | ({"nvidia.com/gpu": gpus} if gpus else {}))


def occupied(nodes: list[Node], share: float) -> State:
    """A cluster of which single pods of 1 to 8 GPUs, which never end, hold a share."""
    state = State(nodes, LEVELS, EASY)
    rng = random.Random(1)
    roles = {gpus: (worker(1, gpus, 2000 * gpus, 8 * gpus),) for gpus in (1, 2, 4, 8)}
    left = int(share * 8 * len(nodes))
    while left > 0:
        gpus = rng.choice((1, 2, 4, 8))
        state.submit(Gang(f"old-{left}", roles[gpus], 0.0))
        left -= gpus
    cycle(state, 0.0)
    return state


def one_large_gang() -> float:
    """A third of the nodes partly used, some tainted."""
    tainted = (Taint("maintenance"),)
    nodes = [Node(n.name, n.capacity, n.labels, tainted if i % 17 == 0 else ()) for i, n in enumerate(cluster(10_000))]
    state = State(nodes, LEVELS, EASY)
    rng = random.Random(1)
    for node in nodes[::3]:
        old = Gang(f"old-{node.name}", (worker(rng.randrange(1, 9), 1, 2000, 8),), 0.0)
        state.adopt(Running(old, 0.0, (Seats(0, (node.name,), (old.members,)),)))
    cycle(state, 0.0)
    pod = {"cpu": 4000, "memory": 16 * GIB, "pods": 1, "nvidia.com/gpu": 1}
    role = Role("worker", 10_000, pod, parallelism=Parallelism(tp=8, dp=1250))
    return _until_bound(state, [Gang("large", (role,), 1.0)])


def standing_queue() -> float:
    """Seconds per pod."""
    state = occupied(cluster(5_000), 0.7)
    rng = random.Random(2)
    shapes = [(worker(10, 0, rng.choice((500, 1000, 1500, 2000)), rng.randrange(1, 33)),) for _ in range(50)]
    gangs = [Gang(f"g{i}", rng.choice(shapes), 1 + i / 1e4, walltime=3600.0, closeness=RACK) for i in range(10_000)]
    return _until_bound(state, gangs) / 100_000


def _until_bound(state: State, gangs: list[Gang]) -> float:
    for gang in gangs:
        state.submit(gang)
    began = perf_counter()
    plan, _ = cycle(state, 20.0)
    seconds = perf_counter() - began
    assert len(plan.binds) == len(gangs), f"{len(gangs) - len(plan.binds)} gangs found no room"
    return seconds


def hopeless() -> float:
    """What 1,000 gangs that can never fit add to a cycle that is about something else."""
    state = occupied(cluster(1_000), 0.7)
    before = _unrelated(state)
    for i in range(1_000):
        state.submit(Gang(f"hopeless-{i}", (worker(10_000 + i, 8, 1000, 1),), 1.0, walltime=60.0))
    cycle(state, 5.0)
    return _unrelated(state) - before


def _unrelated(state: State) -> float:
    return median(_one_comes_and_goes(state, float(i)) for i in range(50))


def _one_comes_and_goes(state: State, now: float) -> float:
    state.submit(Gang("unrelated", (worker(1, 0, 100, 1),), now, walltime=10.0))
    began = perf_counter()
    cycle(state, now)
    state.finish("unrelated", now)
    cycle(state, now)
    return perf_counter() - began


def cycle_time(nodes: int, queued: int) -> float:
    """A gang ends and another comes, with so many waiting behind a promise in 50 kinds."""
    state = occupied(cluster(nodes), 0.7)
    rng = random.Random(3)
    shapes = [(worker(size, 8, 1000, 1),) for size in rng.sample(range(nodes // 2, nodes), 50)]
    for i in range(queued):
        state.submit(Gang(f"g{i}", rng.choice(shapes), 1 + i / 1e5, walltime=3600.0))
    cycle(state, 5.0)
    return median(_one_comes_and_goes(state, 6.0 + i) for i in range(20))


def growth(what: str, sizes: tuple[int, ...], time: Callable[[int], float]) -> list[Measure]:
    return [Measure(f"cycle with {size:,} {what}", time(size) * 1e3, "ms") for size in sizes]
