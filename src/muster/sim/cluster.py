"""The machine a trace is run on: a flat one of N slots, or one described in a file (docs/cluster-file.md)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from muster.errors import UserError
from muster.model.node import Node
from muster.model.resources import Resources
from muster.model.rules import Effect, Taint
from muster.model.topology import Closeness, Topology
from muster.sim.readers import openb, tiresias
from muster.sim.readers.source import open_source
from muster.sim.readers.table import MOST
from muster.sim.workload import CPU, FLAT, GPU, MEMORY, PER_UNIT, Job, Workload, counted
from muster.sim.yamlfile import Entry, load

_SHAPE_KEYS = ("name", "count", "cpu", "memory", "gpus", "resources", "labels", "taints")
_LEVEL_KEYS = ("level", "nodes", "resources", "domains")
_ANYHOW = Closeness()
_PLENTY = 1 << 53  # base units: sums of amounts stay within 64 bits
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(\w+)")


@dataclass(frozen=True, slots=True)
class Cluster:
    nodes: tuple[Node, ...]
    topology: Topology = FLAT

    @property
    def unit(self) -> str:
        """The resource it is measured in."""
        return counted(name for node in self.nodes for name, has in node.capacity.items() if has)

    @property
    def capacity(self) -> int:
        """How much of that resource it has, in whole units."""
        total = sum(node.capacity.get(self.unit, 0) for node in self.nodes)
        return total // PER_UNIT.get(self.unit, 1)


def flat(procs: int, jobs: Iterable[Job]) -> Cluster:
    """One node of `procs` slots of what the jobs count in; it has plenty of everything else they ask for."""
    if not 1 <= procs <= MOST:
        raise UserError(f"--procs {procs}: give at least 1, at most {MOST}")
    most: dict[str, int] = {}
    for role in {id(role): role for job in jobs for role in job.gang.roles}.values():
        for name, amount in role.request.items():
            most[name] = max(most.get(name, 0), amount)
    unit = counted(most)
    plenty = {name: min(_PLENTY, amount * procs * PER_UNIT.get(unit, 1)) for name, amount in most.items()}
    return Cluster((Node("machine", plenty | {unit: procs * PER_UNIT.get(unit, 1)}),))


def read_cluster(path: str) -> Cluster:
    """A cluster file in YAML, an openb node list, or a Tiresias cluster specification."""
    if path.endswith(".csv"):
        return _from_table(path)
    entry = load(Path(path))
    keys = entry.mapping(("nodes", "topology"))
    if "nodes" not in keys:
        raise entry.error("there is no `nodes`; see docs/cluster-file.md")
    nodes = [node for shape in keys["nodes"].items() for node in _nodes(shape)]
    _distinct(keys["nodes"], nodes)
    levels = list(keys["topology"].items()) if "topology" in keys else []
    resources: dict[tuple[str, str], Resources] = {}
    names: list[str] = []
    for level in levels:
        name, nodes = _place(level, nodes, names)
        names.append(name)
        resources |= _domain_resources(level, name, nodes)
    return Cluster(tuple(nodes), Topology(tuple(names), resources))


def on_one_machine(workload: Workload) -> Workload:
    """The workload for a flat machine: there everything is close, so what jobs ask of closeness is met."""
    if all(job.gang.closeness == _ANYHOW for job in workload.jobs):
        return workload
    jobs = (replace(job, gang=replace(job.gang, closeness=_ANYHOW)) for job in workload.jobs)
    return replace(workload, jobs=tuple(jobs))


def check_levels(workload: Workload, cluster: Cluster) -> None:
    """Refuse jobs that name a level the cluster does not have."""
    levels = cluster.topology.levels
    known = {"", *levels, *(level.rpartition("/")[2] for level in levels)}
    for job in workload.jobs:
        for level in (job.gang.closeness.required, job.gang.closeness.preferred):
            if level not in known:
                raise UserError(
                    f"{workload.name}: job {job.id!r} names the level {level!r}; "
                    f"the cluster has {', '.join(levels) or 'none'}: add it to the cluster file's topology"
                )


def of_workload(workload: Workload) -> Cluster:
    """The machines a trace brings itself."""
    if not workload.nodes:
        raise UserError(f"{workload.name} does not say what machine it ran on; give --procs N or --cluster FILE")
    return Cluster(workload.nodes, workload.topology)


def _from_table(path: str) -> Cluster:
    source = open_source(path)
    if openb.sniff_nodes(source.lines):
        return Cluster(openb.read_nodes(source))
    if tiresias.sniff_cluster(source.lines):
        return Cluster(*tiresias.read_cluster(source))
    raise source.error(1, "neither an openb node list nor a Tiresias cluster; see docs/cluster-file.md")


def _nodes(shape: Entry) -> list[Node]:
    keys = shape.mapping(_SHAPE_KEYS)
    if "name" not in keys:
        raise shape.error("there is no `name`")
    name, count = keys["name"].text(), keys["count"].whole(1) if "count" in keys else 1
    capacity = _capacity(keys)
    if not any(capacity.values()):
        raise shape.error("it has nothing; give cpu, gpus or resources")
    labels = {key: value.text() for key, value in keys["labels"].mapping().items()} if "labels" in keys else {}
    taints = tuple(_taint(taint) for taint in keys["taints"].items()) if "taints" in keys else ()
    names = [f"{name}-{index}" for index in range(count)] if "count" in keys else [name]
    return [Node(each, capacity, labels, taints) for each in names]


def _capacity(keys: dict[str, Entry]) -> Resources:
    capacity = {}
    for key, resource in (("cpu", CPU), ("memory", MEMORY), ("gpus", GPU)):
        if key in keys:
            capacity[resource] = keys[key].quantity(resource)
    return capacity | _resources(keys)


def _resources(keys: dict[str, Entry]) -> dict[str, int]:
    if "resources" not in keys:
        return {}
    return {name: entry.quantity(name) for name, entry in keys["resources"].mapping().items()}


def _taint(entry: Entry) -> Taint:
    found = _TAINT.fullmatch(entry.text())
    effects: dict[str, Effect] = {effect: effect for effect in get_args(Effect)}
    if not found or found[3] not in effects:
        raise entry.error(f"{entry.text()!r} is not a taint; write key=value:{'|'.join(effects)}")
    return Taint(found[1], found[2] or "", effects[found[3]])


def _distinct(entry: Entry, nodes: list[Node]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise entry.error(f"there are two nodes {node.name!r}; give each entry its own name")
        seen.add(node.name)
    if not nodes:
        raise entry.error("there are no nodes")


def _place(level: Entry, nodes: list[Node], wider: list[str]) -> tuple[str, list[Node]]:
    """Label nodes with their domain at this level: so many consecutive ones each, or as their labels say."""
    keys = level.mapping(_LEVEL_KEYS)
    if "level" not in keys:
        raise level.error("there is no `level`, the node label that names it")
    name = keys["level"].text()
    if name in wider:
        raise keys["level"].error(f"level {name!r} is there twice")
    if "nodes" not in keys:
        bare = next((node.name for node in nodes if name not in node.labels), None)
        if bare is not None:
            raise level.error(f"node {bare!r} has no label {name!r}; give it one, or `nodes` per domain")
        return name, nodes
    size = keys["nodes"].whole(1)
    placed = [
        replace(node, labels={**node.labels, name: node.labels.get(name, f"{name}-{index // size}")})
        for index, node in enumerate(nodes)
    ]
    return name, placed


def _domain_resources(level: Entry, name: str, nodes: list[Node]) -> dict[tuple[str, str], Resources]:
    keys = level.mapping(_LEVEL_KEYS)
    each = _resources(keys)
    found: dict[tuple[str, str], Resources] = {(name, node.labels[name]): each for node in nodes} if each else {}
    own = keys["domains"].mapping() if "domains" in keys else {}
    domains = {node.labels[name] for node in nodes}
    for domain, entry in own.items():
        if domain not in domains:
            raise entry.error(f"there is no such domain; there are: {', '.join(sorted(domains)[:8])}")
        found[name, domain] = each | {key: value.quantity(key) for key, value in entry.mapping().items()}
    return found
