"""Alibaba's openb pods and nodes (cluster-trace-gpu-v2023): shared cards, card models, CPU and memory.

A pod is a gang of one. Cards are counted in thousandths, as the trace does: a pod of `num_gpu` cards at
`gpu_milli` each asks for their product of `nvidia.com/gpu-milli`, and a node has 1000 per card. So the
cards of a node form one pool: sharing is exact per node, but a share may lie across two cards in the model,
which packs a little better than cards do. `gpu_spec` lists the card models a pod accepts.

The nodes come from the node list next to the pods. A pod runs from its scheduling to its deletion; one that
was never scheduled is left out, because how long it would have run is not known.
"""

from pathlib import Path

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.rules import NodeTerm, Requirement, Rules
from muster.sim.readers.source import Source, open_source
from muster.sim.readers.table import Row, header, rows
from muster.sim.workload import CPU, GPU_MILLI, MEMORY, Job, Workload

MODEL = "nvidia.com/gpu.product"
NODE_LISTS = ("openb_node_list_all_node.csv", "openb_node_list_gpu_node.csv")
_COLUMNS = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}
_NODE_COLUMNS = {"sn", "cpu_milli", "memory_mib", "gpu", "model"}
_MIB = 1 << 20
_CARD = 1000

_Shape = tuple[int, int, int, str]


def sniff(head: list[str]) -> bool:
    return header(head) >= _COLUMNS


def read(source: Source) -> Workload:
    if "deletion_time" not in header(source.lines):
        raise source.error(1, "there is no creation_time and deletion_time: this list has sizes only, no time")
    shapes: dict[_Shape, tuple[Role, ...]] = {}
    jobs, skipped = [], []
    for row in rows(source):
        job = _job(row, shapes)
        if isinstance(job, Job):
            jobs.append(job)
        else:
            skipped.append(f"{source.where}, line {row.line}: pod {row.text('name')} left out: {job}")
    jobs.sort(key=lambda job: job.gang.submitted)
    return Workload(source.name, tuple(jobs), nodes=_nodes_beside(source.folder), skipped=tuple(skipped))


def sniff_nodes(head: list[str]) -> bool:
    return header(head) >= _NODE_COLUMNS


def read_nodes(source: Source) -> tuple[Node, ...]:
    return tuple(_node(row) for row in rows(source))


def _job(row: Row, shapes: dict[_Shape, tuple[Role, ...]]) -> Job | str:
    if not row.has("scheduled_time"):
        return "it was never scheduled, so its run time is not known"
    runtime = row.number("deletion_time") - row.number("scheduled_time")
    if runtime <= 0:
        return f"its run time is {runtime:g}"
    cards, share = row.whole("num_gpu"), row.whole("gpu_milli")
    if share > _CARD:
        raise row.error("gpu_milli", f"give at most {_CARD}, one whole card")
    shape = (row.whole("cpu_milli"), row.whole("memory_mib"), cards * share, row.text("gpu_spec"))
    identity = row.text("name", str(row.line))
    gang = Gang(uid=identity, roles=shapes.get(shape) or _shape(shape, shapes), submitted=row.number("creation_time"))
    return Job(gang, runtime, identity)


def _shape(shape: _Shape, shapes: dict[_Shape, tuple[Role, ...]]) -> tuple[Role, ...]:
    cpu, memory, share, models = shape
    request = {CPU: cpu, MEMORY: memory * _MIB} | ({GPU_MILLI: share} if share else {})
    rules = Rules()
    if models:
        rules = Rules(nodes_any=(NodeTerm((Requirement(MODEL, "In", tuple(models.split("|"))),)),))
    shapes[shape] = (Role("pod", 1, request, rules=rules),)
    return shapes[shape]


def _nodes_beside(folder: Path) -> tuple[Node, ...]:
    for name in NODE_LISTS:
        if (folder / name).is_file():
            return read_nodes(open_source(str(folder / name)))
    return ()


def _node(row: Row) -> Node:
    capacity = {CPU: row.whole("cpu_milli"), MEMORY: row.whole("memory_mib") * _MIB}
    cards = row.whole("gpu")
    if cards:
        capacity[GPU_MILLI] = cards * _CARD
    return Node(row.text("sn"), capacity, labels={MODEL: row.text("model")} if row.has("model") else {})
