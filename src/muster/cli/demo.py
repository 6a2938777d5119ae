"""`muster demo`: the point of it in under a minute. `muster demo deadlock` shows the first part alone."""

import argparse
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.cli import simtables
from muster.cli.sim import write_comparison
from muster.errors import UserError
from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.plan.actions import Bind
from muster.plan.cycle import cycle
from muster.plan.policy import parse
from muster.plan.state import State
from muster.sim.cluster import read_cluster
from muster.sim.engine import simulate
from muster.sim.outcome import Outcome
from muster.sim.readers.formats import read_trace
from muster.sim.words import duration
from muster.sim.workload import GPU, Job, Workload

NAME = "demo"
HELP = "See two jobs deadlock without gangs and not with them, then a busy day under three policies."

_DEADLOCK = "deadlock"
_GPUS = 4
_RUNTIME = 600.0
_COLOURS = {"A": "cyan", "B": "magenta"}
_DAY = ("fcfs", "easy", "conservative")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar=_DEADLOCK, help="show the deadlock alone")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the pictures go (default: a new folder)")


def run(args: argparse.Namespace) -> int:
    if args.what not in {None, _DEADLOCK}:
        raise UserError(f"there is no demo {args.what!r}; there is {_DEADLOCK}, and without a name all of it")
    console = Console(highlight=False)
    deadlock(console)
    if args.what is None:
        console.print()
        busy_day(console, args.out or Path(tempfile.mkdtemp(prefix="muster-demo-")))
    return 0


def deadlock(console: Console) -> None:
    """The same two jobs, planned by the same core: pods one by one, and gangs."""
    console.print(Text("Two training jobs, A and B, need 4 GPUs each. The cluster has 4.\n", "bold"))
    console.print("Pods one by one, as a scheduler without gangs does it:")
    seats = _pod_by_pod(console)
    held = ", ".join(f"{name} holds {seats.count(name)} of {_GPUS}" for name in _COLOURS)
    console.print(Text(f"  {held}: both wait for ever.\n  Nothing runs, and the cluster looks full.\n", "red"))
    console.print("Muster, gang by gang:")
    for outcome in _gang_by_gang():
        console.print(_fate(outcome))


def busy_day(console: Console, folder: Path) -> None:
    with as_file(files("muster.sim") / "day") as day:
        workload = read_trace(str(day / "busy-day.csv"))
        cluster = read_cluster(str(day / "cluster.yaml"))
    console.print(Text("One busy day of a small GPU cluster", "bold"))
    console.print("fcfs: nobody passes a waiting gang.\neasy, conservative: whoever delays no promise may pass.\n")
    histories = [simulate(workload, cluster.nodes, cluster.topology, policy) for policy in _DAY]
    console.print(simtables.comparison(histories, cluster.nodes, console.width))
    page = write_comparison(histories, cluster, folder)
    console.print(
        f"\npictures: {page}\n(each policy's own report, with a Gantt chart, in the folders beside it)",
        soft_wrap=True,
    )


def _pod_by_pod(console: Console) -> list[str]:
    """Show each pod as it is bound; hand back which job holds each GPU."""
    state = State(_nodes(), policy=parse("pods"))
    for job in _jobs():
        state.submit(job.gang)
    plan, _ = cycle(state, 0.0)
    seats: list[str] = []
    table = Table.grid(padding=(0, 2, 0, 0))
    for action in plan.actions:
        if isinstance(action, Bind):
            seats.append(action.gang.uid)
            number = seats.count(action.gang.uid)
            table.add_row(f"  pod {action.gang.uid}-{number} is bound", _cards(seats))
    console.print(table)
    return seats


def _gang_by_gang() -> list[Outcome]:
    workload = Workload("deadlock", _jobs())
    return simulate(workload, _nodes(), policy="easy").outcomes


def _fate(outcome: Outcome) -> Text:
    name = outcome.job.id
    started, finished = outcome.started or 0.0, outcome.finished or 0.0
    when = f"starts whole after {duration(started)}" if started else "starts whole at once"
    return Text.assemble(f"  {name} {when:<28}", _cards([name] * _GPUS), f"  done after {duration(finished)}")


def _cards(seats: list[str]) -> Text:
    """The four GPUs, and who holds each."""
    taken = [(f" {name} ", f"bold black on {_COLOURS[name]}") for name in seats]
    free = [(" · ", "dim")] * (_GPUS - len(seats))
    return Text.assemble("[", *taken, *free, "]")


def _nodes() -> list[Node]:
    return [Node("node", {GPU: _GPUS})]


def _jobs() -> tuple[Job, ...]:
    role = Role("worker", _GPUS, {GPU: 1})
    gangs = (Gang(uid=name, roles=(role,), submitted=0.0, walltime=_RUNTIME) for name in _COLOURS)
    return tuple(Job(gang, _RUNTIME, gang.uid) for gang in gangs)
