"""A verb for tests: it does, or fails, in the way it is told to."""

import argparse
import importlib
import time

from muster.errors import UserError

NAME = "fake"
HELP = "do as told"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to fail, and how often to print."""
    parser.add_argument("--how", default="well", choices=["well", "input", "missing", "bug", "hang"])
    parser.add_argument("--lines", type=int, default=1)


def run(args: argparse.Namespace) -> int:
    """Do as told."""
    for number in range(args.lines):
        print(f"line {number}")
    match args.how:
        case "input":
            raise UserError("trace.swf:7: submit time 'x'\nis not a number; write seconds")
        case "missing":
            importlib.import_module("surely_not_installed.submodule")
        case "bug":
            raise RuntimeError("a bug")
        case "hang":
            print("hanging", flush=True)
            time.sleep(600)
    return int(args.lines) % 2
