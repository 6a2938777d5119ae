"""`muster down`: stop the cluster that `muster up` started, and wait until it is gone."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from muster.cli.up import DEFAULT_KUBECONFIG
from muster.local import presence

NAME = "down"
HELP = "Stop the cluster that 'muster up' started."
_PATIENCE = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", type=Path, default=DEFAULT_KUBECONFIG, metavar="FILE", help="the one given to 'muster up'"
    )


def run(args: argparse.Namespace) -> int:
    running = presence.find(args.kubeconfig)
    if running is None:
        print(f"no cluster runs behind {args.kubeconfig}")
        return 1
    os.kill(running.pid, signal.SIGTERM)
    end = time.monotonic() + _PATIENCE
    while running.alive:
        if time.monotonic() > end:
            print(f"the cluster at {running.url} (process {running.pid}) is still stopping")
            return 1
        time.sleep(0.05)
    print(f"the cluster at {running.url} has stopped")
    return 0
