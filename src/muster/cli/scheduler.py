"""`muster scheduler`: schedule gangs on a Kubernetes cluster, from outside it or from a pod inside."""

import argparse
import asyncio
import logging
import signal
from collections.abc import Coroutine
from pathlib import Path

from muster.control.serve import POLICY, Settings, serve
from muster.errors import UserError
from muster.kube import config
from muster.kube.errors import ConfigError
from muster.plan.policy import parse

NAME = "scheduler"
HELP = "Schedule gangs on a Kubernetes cluster, as the scheduler that pods name."
LEVELS = tuple(f"topology.kubernetes.io/{level}" for level in ("region", "zone", "block", "rack"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="how to reach the cluster (default: as kubectl)"
    )
    parser.add_argument("--context", default="", metavar="NAME", help="which context of it (default: the current one)")
    parser.add_argument(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help="schedule pods with this schedulerName; may be given several times (default: muster)",
    )
    parser.add_argument("--policy", default=POLICY, metavar="P", help="as in `muster sim`")
    parser.add_argument(
        "--level",
        action="append",
        metavar="LABEL",
        help=f"node label of a topology level, widest first; may be given several times (default: {', '.join(LEVELS)})",
    )
    parser.add_argument("--verbose", action="store_true", help="say what is done")


def run(args: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    try:
        policy = parse(args.policy)
        access = config.load(args.kubeconfig, args.context)
    except (ValueError, ConfigError) as error:
        raise UserError(str(error)) from None
    if not policy.whole:
        raise UserError(f"--policy {args.policy}: shows in the simulator what happens without gangs; not for a cluster")
    settings = Settings(tuple(args.scheduler_name or ("muster",)), tuple(args.level or LEVELS), policy)
    asyncio.run(_until_stopped(serve(access, settings)))
    return 0


async def _until_stopped(work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
