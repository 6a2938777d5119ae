"""The verbs of the `muster` command: one row each, in the order in which help shows them.

The table is explicit and carries its own summaries, so that `muster --help` imports no verb: a verb's module,
and with it numpy or aiohttp, is imported only when that verb is used.
"""

import argparse
import importlib
from dataclasses import dataclass
from typing import Protocol, cast


class VerbModule(Protocol):
    """What a verb's module has to offer."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what the verb takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One row: the verb, the module that does it, and the module's HELP again."""

    name: str
    module: str
    summary: str

    def load(self) -> VerbModule:
        """Import the module, which may need dependencies that are not installed."""
        return cast("VerbModule", importlib.import_module(self.module))


VERBS: tuple[Verb, ...] = (
    Verb(
        "scheduler",
        "muster.cli.scheduler",
        "Schedule gangs on a Kubernetes cluster, as the scheduler that pods name.",
    ),
    Verb("up", "muster.cli.up", "Start a Kubernetes-compatible cluster on this machine; ctrl-C stops it."),
    Verb("down", "muster.cli.down", "Stop the cluster that 'muster up' started."),
    Verb("status", "muster.cli.status", "Say whether a cluster runs, where, and what is in it."),
    Verb("node", "muster.cli.node", "Make a node of the local cluster fail, bring it back, or empty it."),
    Verb(
        "demo",
        "muster.cli.demo",
        "See two jobs deadlock without gangs and not with them, then a busy day under three policies.",
    ),
    Verb(
        "sim",
        "muster.cli.sim",
        "Run a trace of jobs through the scheduler and see how they fare; compare policies.",
    ),
)
