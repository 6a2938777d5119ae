"""The launcher for a laptop or any set of hosts: one authority, agents, and whoever dies is started again.

    python -m muster.elastic.launch --workers 4 --min 2 train.py ...
    python -m muster.elastic.launch --workers 4 --join host:port --secret-file job.key train.py ...   # other hosts

Each local worker has an agent of its own, as each pod would. The authority is a process like the others:
killing it stops no training.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from muster.elastic.options import Options
from muster.elastic.wire import split_address

RESTARTS = 10
POLL = 0.05


@dataclass(slots=True)
class Process:
    """Something that is kept running: its command and how often it was started."""

    name: str
    command: list[str]
    environment: dict[str, str]
    running: "subprocess.Popen[bytes] | None" = None
    starts: int = 0

    def start(self) -> None:
        self.starts += 1
        self.running = subprocess.Popen(  # noqa: S603 -- our own modules
            self.command, env=os.environ | self.environment, start_new_session=True
        )

    def signal_group(self, number: int) -> None:
        """The process and all it started; its own group was made for that."""
        if self.running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.running.pid, number)


@dataclass(slots=True)
class Launch:
    options: argparse.Namespace
    directory: Path
    processes: dict[str, Process] = field(default_factory=dict)
    stopping: bool = False

    def prepare(self) -> None:
        o = self.options
        secret = Path(o.secret_file) if o.secret_file else self._secret()
        common = {"MUSTER_ELASTIC_SECRET_FILE": str(secret), "PYTHONUNBUFFERED": "1"}
        address = o.join or f"{o.host}:{o.port or free_port(o.host)}"
        if not o.join:
            terms = {
                "job": o.job,
                "least": o.min,
                "most": o.max or o.workers,
                "multiple": o.multiple,
                "silence": o.silence,
            }
            self._add(
                "authority",
                ["muster.elastic.serving", json.dumps(terms), address, str(self.directory)],
                common,
            )
            (self.directory / "address").write_text(address)
        for i in range(o.workers + o.spares):
            self._add(f"agent-{i}", ["muster.elastic.agent", "--options", self._agent(i, address)], common)

    def _secret(self) -> Path:
        path = self.directory / "secret"
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32))
        return path

    def _agent(self, index: int, address: str) -> str:
        o = self.options
        return json.dumps(
            asdict(
                Options(
                    f"{o.name}-{index}",
                    o.job,
                    address,
                    (sys.executable, *o.script),
                    host=o.host,
                    domain=o.domain,
                    replicas=o.replicas,
                    spare=o.standby,
                    silence=o.silence,
                    store=o.store,
                    durable_every=o.durable_every,
                    grace=o.grace,
                )
            )
        )

    def _add(self, name: str, module: list[str], environment: dict[str, str]) -> None:
        self.processes[name] = Process(name, [sys.executable, "-m", *module], environment)

    def run(self) -> int:
        for process in self.processes.values():
            process.start()
        self._note()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        code = self._watch()
        for process in self.processes.values():
            process.signal_group(signal.SIGKILL)
        return code

    def _note(self) -> None:
        """Who runs, for tools and tests that look."""
        pids = {n: p.running.pid for n, p in self.processes.items() if p.running is not None}
        fresh = self.directory / "processes.new"
        fresh.write_text(json.dumps(pids))
        fresh.replace(self.directory / "processes.json")

    def _watch(self) -> int:
        """Until all agents are done; anybody who died of a signal or with an error is started again."""
        while True:
            agents = [p for n, p in self.processes.items() if n != "authority"]
            if all(p.running is not None and p.running.poll() == 0 for p in agents):
                return 0
            if any(self._given_up(p) for p in agents):
                return 1
            for process in self.processes.values():
                code = None if process.running is None else process.running.poll()
                if code is not None and code != 0 and not self.stopping and process.starts <= RESTARTS:
                    process.signal_group(signal.SIGKILL)
                    process.start()
                    self._note()
            if self.stopping and all(p.running is None or p.running.poll() is not None for p in agents):
                return 143
            time.sleep(POLL)

    @staticmethod
    def _given_up(process: Process) -> bool:
        """An agent that ends with 1 has said why: its worker fails again and again, or nobody wants it."""
        return process.running is not None and process.running.poll() == 1

    def _stop(self, *_: Any) -> None:
        """Pass the signal on: agents leave in good order."""
        self.stopping = True
        for name, process in self.processes.items():
            if name != "authority" and process.running is not None:
                process.running.send_signal(signal.SIGTERM)


def free_port(host: str) -> int:
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m muster.elastic.launch", description=__doc__.splitlines()[0])
    p.add_argument("--workers", type=int, default=1, help="workers on this host")
    p.add_argument("--spares", type=int, default=0, help="further workers that wait to replace a lost one")
    p.add_argument("--standby", action="store_true", help="a second, warm worker process beside each worker")
    p.add_argument("--min", type=int, default=1, help="the fewest workers to train with")
    p.add_argument("--max", type=int, default=0, help="the most workers to train with (default: --workers)")
    p.add_argument("--multiple", type=int, default=1, help="the size is a multiple of this (tensor parallelism)")
    p.add_argument("--replicas", type=int, default=1, help="copies of each shard on other agents")
    p.add_argument("--store", default="", help="directory for durable checkpoints")
    p.add_argument("--durable-every", type=int, default=0, metavar="STEPS", help="steps between durable checkpoints")
    p.add_argument("--silence", type=float, default=5.0, help="seconds without a sign of life until one is lost")
    p.add_argument("--grace", type=float, default=30.0, help="seconds a stopped pod has left")
    p.add_argument("--job", default="job", help="name of the job")
    p.add_argument("--name", default=socket.gethostname(), help="name of this host")
    p.add_argument("--domain", default="", help="failure domain of this host (default: each agent its own)")
    p.add_argument("--host", default="127.0.0.1", help="address to listen on")
    p.add_argument("--port", type=int, default=0, help="port of the authority")
    p.add_argument("--join", default="", metavar="HOST:PORT", help="the authority another launcher started")
    p.add_argument("--secret-file", default="", help="the job's secret, the same on all hosts")
    p.add_argument("--directory", default="", help="for the authority's record and the secret")
    p.add_argument("script", nargs=argparse.REMAINDER, help="training script and its arguments")
    return p


def main(argv: list[str] | None = None) -> int:
    p = parser()
    options = p.parse_args(argv)
    if not options.script:
        p.error("a training script is needed, e.g. --workers 2 train.py")
    if options.join and not options.secret_file:
        p.error("--join needs --secret-file: agents accept only members of their own job")
    if options.join:
        try:
            split_address(options.join)
        except ValueError:
            p.error(f"--join {options.join}: expected HOST:PORT")
    with tempfile.TemporaryDirectory(prefix="muster-") as scratch:
        directory = Path(options.directory or scratch)
        directory.mkdir(parents=True, exist_ok=True)
        launch = Launch(options, directory)
        launch.prepare()
        return launch.run()


if __name__ == "__main__":
    sys.exit(main())
