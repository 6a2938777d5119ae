"""`muster up`: a Kubernetes-compatible cluster on this machine, until ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from muster.cli.verbs import VERBS
from muster.errors import UserError
from muster.local import cluster_file, kubeconfig, presence
from muster.local.embedded import Settings, UnsafeAddressError
from muster.local.nodes.template import NodeTemplate
from muster.local.store import DataInUseError
from muster.local.whole import Whole, start
from muster.objects.quantity import QuantityError, parse_quantity

NAME = "up"
HELP = "Start a Kubernetes-compatible cluster on this machine; ctrl-C stops it."
DEFAULT_KUBECONFIG = Path.home() / ".muster" / "kubeconfig"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=DEFAULT_KUBECONFIG,
        metavar="FILE",
        help=f"where to write how to reach the cluster (default {DEFAULT_KUBECONFIG})",
    )
    parser.add_argument("--nodes", type=int, default=8, metavar="N", help="simulated nodes (default 8)")
    parser.add_argument("--gpus", type=int, default=8, metavar="N", help="GPUs of each node (default 8)")
    parser.add_argument("--cpus", type=int, default=64, metavar="N", help="cores of each node (default 64)")
    parser.add_argument("--memory", default="512Gi", metavar="SIZE", help="memory of each node (default 512Gi)")
    parser.add_argument("--racks", type=int, default=2, metavar="N", help="racks the nodes stand in (default 2)")
    parser.add_argument("--cluster", type=Path, metavar="FILE", help="groups of nodes from a file, instead")
    parser.add_argument("--port", type=int, default=8443, metavar="PORT", help="where to listen (default 8443)")
    parser.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on (default 127.0.0.1); any but this machine's own needs --token-file",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="the administrator's token, instead of a new one"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the state here, and start from what is here")
    parser.add_argument(
        "--power-safe", action="store_true", help="acknowledge a write only once it would survive a power cut"
    )
    parser.add_argument(
        "--native-gang", action="store_true", help="serve the scheduling.k8s.io PodGroup, as Kubernetes can be told to"
    )
    parser.add_argument("--no-scheduler", action="store_true", help="leave pods to a scheduler started by hand")


def run(args: argparse.Namespace) -> int:
    templates = _templates(args)
    if args.kubeconfig.is_dir():
        raise UserError(f"--kubeconfig {args.kubeconfig}: is a folder; name the file to write")
    if running := presence.find(args.kubeconfig):
        raise UserError(f"a cluster already runs behind {args.kubeconfig} at {running.url}; stop it with 'muster down'")
    try:
        asyncio.run(_serve(args, templates))
    except (DataInUseError, UnsafeAddressError) as error:
        raise UserError(str(error)) from None
    return 0


def _templates(args: argparse.Namespace) -> list[NodeTemplate]:
    if args.cluster is not None:
        return cluster_file.read(args.cluster)
    for name in ("nodes", "gpus", "cpus", "racks"):
        if getattr(args, name) < 0:
            raise UserError(f"--{name} {getattr(args, name)}: must not be negative")
    try:
        parse_quantity(args.memory)
    except QuantityError as error:
        raise UserError(f"--memory: {error}") from None
    capacity = {"cpu": str(args.cpus), "memory": args.memory}
    if args.gpus:
        capacity["nvidia.com/gpu"] = str(args.gpus)
    return [NodeTemplate(count=args.nodes, capacity=capacity, racks=args.racks)] if args.nodes else []


async def _serve(args: argparse.Namespace, templates: list[NodeTemplate]) -> None:
    stop = _stop_on_signal()
    cluster = await _start(args, templates)
    scheduler: asyncio.subprocess.Process | None = None
    try:
        kubeconfig.write(args.kubeconfig, cluster.api.kubeconfig())
        presence.leave(args.kubeconfig, cluster.api.url, str(args.data or ""))
        scheduler = await _scheduler(args)
        print(f"The cluster is up at {cluster.api.url}. Point kubectl at it:", flush=True)
        print(f"  export KUBECONFIG={args.kubeconfig.resolve()}", flush=True)
        await stop.wait()
    finally:
        presence.clear(args.kubeconfig)
        if scheduler is not None and scheduler.returncode is None:
            scheduler.terminate()
            await scheduler.wait()
        await cluster.stop()


async def _start(args: argparse.Namespace, templates: list[NodeTemplate]) -> Whole:
    token = ""
    if args.token_file is not None:
        try:
            token = args.token_file.read_text().strip()
        except OSError as error:
            raise UserError(f"--token-file {args.token_file}: {error.strerror}") from None
    settings = Settings(args.data, args.listen, args.port, token, True, args.native_gang, args.power_safe)
    try:
        return await start(settings, templates)
    except OSError as error:
        raise UserError(
            f"cannot listen on {args.listen}:{args.port}: {error.strerror}; choose another --port"
        ) from None


def _stop_on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


async def _scheduler(args: argparse.Namespace) -> asyncio.subprocess.Process | None:
    """The scheduler is a process of its own, exactly as it would be beside a real cluster."""
    if args.no_scheduler or not any(verb.name == "scheduler" for verb in VERBS):
        return None
    command = [sys.executable, "-m", "muster", "scheduler", "--kubeconfig", str(args.kubeconfig)]
    command += ["--scheduler-name", "muster", "--scheduler-name", "default-scheduler"]
    return await asyncio.create_subprocess_exec(*command, start_new_session=True)
