"""The brain by itself: how long a cycle takes, and how that grows."""

import random

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.cycle import cycle
from muster.plan.state import State

GIB = 1 << 30
LEVELS = Topology(("zone", "block", "rack"))
REPEATS = 5


def cluster(count: int, per_rack: int = 40) -> list[Node]:
    capacity = {"cpu": 128_000, "memory": 2048 * GIB, "nvidia.com/gpu": 8, "pods": 110}
    return [
        Node(
            f"node-{i}",
            capacity,
            {
                "zone": f"z{i // (per_rack * 64)}",
                "block": f"b{i // (per_rack * 8)}",
                "rack": f"r{i // per_rack}",
            },
        )
        for i in range(count)
    ]


def worker(count: int, gpus: int, cpu: int = 4000, memory: int = 16) -> Role:
    request = {"cpu": cpu, "memory": memory * GIB, "pods": 1}
    if gpus:
        request["nvidia.com/gpu"] = gpus
    return Role("worker", count, request)


def occupy(state: State, share: float, seed: int) -> None:
    """Fill the cluster to a share of its GPUs with gangs of one that never end."""
    rng = random.Random(seed)
    roles = {n: (worker(1, n, 2000 * n, 8 * n),) for n in (1, 2, 4, 8)}
    wanted = int(share * 8 * len(state.ledger.nodes))
    number = 0
    while wanted > 0:
        size = rng.choice((1, 2, 4, 8))
        state.submit(Gang(f"old-{number}", roles[size], 0.0))
        number += 1
        wanted -= size
    cycle(state, 0.0)


def timed(work: "object") -> float:  # placeholder
    raise NotImplementedError
