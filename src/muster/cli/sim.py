"""`muster sim`: run a trace through the scheduler, or compare policies on it."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from muster.cli import simtables
from muster.cli.progress import Bar
from muster.errors import UserError
from muster.plan.policy import parse
from muster.sim import outputs
from muster.sim.cluster import Cluster, check_levels, flat, of_workload, on_one_machine, read_cluster
from muster.sim.engine import TIE_BREAKS, simulate
from muster.sim.outcome import History
from muster.sim.readers.formats import read_trace
from muster.sim.report.compare import compare_page
from muster.sim.report.page import run_page
from muster.sim.workload import Workload

NAME = "sim"
HELP = "Run a trace of jobs through the scheduler and see how they fare; compare policies."

_COMPARE = "compare"
_NO_LENGTHS = "the trace states no time limits, so nothing can safely be backfilled; --clairvoyant tells the run times"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s TRACE [--policy P] [OPTION ...]\n       %(prog)s compare TRACE [--policies A,B,C] [OPTION ...]"
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[compare] TRACE",
        help="a trace (SWF, ITP, openb, Pollux, Sia, Tiresias or plain CSV; .gz; archive.tar.gz:MEMBER); "
        "with `compare` before it, several policies side by side",
    )
    parser.add_argument("--policy", metavar="P", help="fcfs, easy, easy-sjbf, conservative, pods; easy:wfp3, ...")
    parser.add_argument("--policies", metavar="A,B,C", help="the policies to compare")
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument("--procs", type=int, metavar="N", help="a flat machine of N CPUs or GPUs")
    machine.add_argument("--cluster", metavar="FILE", help="a cluster file: nodes, racks, blocks")
    parser.add_argument("--clairvoyant", action="store_true", help="tell the scheduler the exact run times")
    parser.add_argument("--tie-break", default="batch", metavar="ORDER", help="batch (default) or pyss")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N jobs")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write jobs.csv, summary.json and report.html there")


def run(args: argparse.Namespace) -> int:
    trace, policies = _asked(args)
    if args.tie_break not in TIE_BREAKS:
        raise UserError(f"--tie-break {args.tie_break}: no such order; there are {', '.join(TIE_BREAKS)}")
    if args.out is not None:
        outputs.make_folder(args.out)
    workload, cluster = _read(args, trace)
    histories = [_simulate(args, workload, cluster, policy) for policy in policies]
    console = Console()
    if args.words[0] == _COMPARE:
        console.print(simtables.comparison(histories, cluster.nodes, console.width))
    else:
        console.print(simtables.run_result(histories[0], cluster.nodes, console.width))
    for note in _notes(args, workload):
        console.print(note, style="yellow", soft_wrap=True)
    if args.out is not None:
        console.print(f"written: {_write(args, histories, cluster)}", soft_wrap=True)
    return 0


def _asked(args: argparse.Namespace) -> tuple[str, list[str]]:
    """The trace and the policies, which are checked before anything is read."""
    comparing = args.words[0] == _COMPARE and len(args.words) == 2
    if not comparing and len(args.words) > 1:
        raise UserError(f"give one trace; {args.words[1]!r} is one too many")
    if not comparing and args.words[0] == _COMPARE:
        raise UserError("compare what? give a trace: muster sim compare TRACE --policies A,B,C")
    if (comparing and args.policy) or (not comparing and args.policies):
        raise UserError("one run takes --policy P; compare takes --policies A,B,C")
    named = (args.policies or "fcfs,easy,conservative") if comparing else (args.policy or "easy")
    policies = list(dict.fromkeys(name.strip() for name in named.split(","))) if comparing else [named]
    for name in policies:
        try:
            parse(name)
        except ValueError as error:
            raise UserError(str(error)) from None
    return args.words[-1], policies


def _read(args: argparse.Namespace, trace: str) -> tuple[Workload, Cluster]:
    workload = read_trace(trace, args.limit)
    if args.procs is not None:
        return on_one_machine(workload), flat(args.procs, workload.jobs)
    cluster = read_cluster(args.cluster) if args.cluster else of_workload(workload)
    check_levels(workload, cluster)
    return workload, cluster


def _notes(args: argparse.Namespace, workload: Workload) -> Iterator[str]:
    """What the reader of the figures should know about the trace."""
    if workload.skipped:
        yield f"{len(workload.skipped)} records left out; the first: {workload.skipped[0]}"
    if not args.clairvoyant and all(job.gang.length is None for job in workload.jobs):
        yield _NO_LENGTHS


def _simulate(args: argparse.Namespace, workload: Workload, cluster: Cluster, policy: str) -> History:
    with Bar(f"{workload.name} under {policy}") as bar:
        return simulate(
            workload,
            cluster.nodes,
            cluster.topology,
            policy,
            clairvoyant=args.clairvoyant,
            tie_break=args.tie_break,
            progress=bar,
        )


def _write(args: argparse.Namespace, histories: Sequence[History], cluster: Cluster) -> Path:
    folder: Path = args.out
    if args.words[0] != _COMPARE:
        return write_run(histories[0], cluster, folder)
    return write_comparison(histories, cluster, folder)


def write_comparison(histories: Sequence[History], cluster: Cluster, folder: Path) -> Path:
    """A folder for each run, and the comparison beside them; hands back the page's path."""
    for history in histories:
        write_run(history, cluster, folder / history.policy.replace(":", "-"))
    outputs.write_comparison(histories, folder / "compare.json")
    page = folder / "compare.html"
    page.write_text(compare_page(histories, cluster.nodes))
    return page


def write_run(history: History, cluster: Cluster, folder: Path) -> Path:
    """jobs.csv, summary.json and the report of one run; hands back the report's path."""
    slots = outputs.write(history, cluster.nodes, folder)
    report = folder / "report.html"
    report.write_text(run_page(history, slots, cluster.nodes))
    return report
