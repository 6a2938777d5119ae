"""Tiresias' job lists: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`.

A job is one gang with a member per GPU. The list states no requested time, so the scheduler does not know how
long a job runs. Its cluster files are one line of counts: switches, nodes per switch, what a node has.
"""

from muster.model.gang import Gang
from muster.model.node import Node
from muster.model.topology import Topology
from muster.sim.readers.source import Source
from muster.sim.readers.table import header, rows
from muster.sim.readers.workers import Workers
from muster.sim.workload import CPU, GPU, MEMORY, PER_UNIT, Job, Workload

_COLUMNS = {"job_id", "num_gpu", "submit_time", "duration"}
_CLUSTER_COLUMNS = {"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"}
_SWITCH = "switch"
_GIB = 1 << 30


def sniff(head: list[str]) -> bool:
    return header(head) >= _COLUMNS


def read(source: Source) -> Workload:
    workers = Workers()
    jobs = []
    for row in rows(source):
        identity = row.text("job_id", str(row.line))
        gang = Gang(
            uid=identity,
            roles=workers[row.whole("num_gpu", least=1)],
            submitted=row.number("submit_time"),
            name=row.text("model_name"),
        )
        jobs.append(Job(gang, row.positive("duration"), identity))
    return Workload(source.name, tuple(jobs))


def sniff_cluster(head: list[str]) -> bool:
    return header(head) >= _CLUSTER_COLUMNS


def read_cluster(source: Source) -> tuple[tuple[Node, ...], Topology]:
    """Nodes labelled by their switch, and that one level."""
    nodes: list[Node] = []
    for row in rows(source):
        capacity = {
            GPU: row.whole("num_gpu_p_node"),
            CPU: row.whole("num_cpu_p_node") * PER_UNIT[CPU],
            MEMORY: row.whole("mem_p_node") * _GIB,
        }
        for switch in range(row.whole("num_switch", least=1)):
            labels = {_SWITCH: f"{_SWITCH}-{switch}"}
            count = row.whole("num_node_p_switch", least=1)
            nodes += [Node(f"node-{len(nodes) + index}", capacity, labels) for index in range(count)]
    if not nodes:
        raise source.error(1, "there is no line of counts below the header")
    return tuple(nodes), Topology((_SWITCH,))
