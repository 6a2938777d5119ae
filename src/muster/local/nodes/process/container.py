"""One container of a pod as processes of this machine: started, watched, asked how it is, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.local.api.access import Object
from muster.local.nodes.process import devices
from muster.local.nodes.process.environment import ConfigError, Facts, command_line, environment, inherited
from muster.local.nodes.process.logs import Log
from muster.local.nodes.process.probes import Probe
from muster.local.nodes.process.processes import MARK, Session, session_of, signal_process
from muster.local.nodes.process.site import COMMAND, Machine, Site
from muster.local.nodes.process.status import State
from muster.local.nodes.process.volumes import mounts

_START_ERROR = 128
_DRAIN = 5.0


@dataclass(slots=True)
class Place:
    """What a container needs to know about the pod it is in."""

    site: Site
    machine: Machine
    pod: Object
    folder: Path
    facts: Facts
    hostname: str
    volumes: dict[str, Path] = field(default_factory=dict)

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def grace(self) -> float:
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def say(self, reason: str, message: str, kind: str = "Normal") -> None:
        self.site.recorder.say(self.pod, reason, message, kind)


def log_path(folder: Path, run: int) -> Path:
    return folder / f"{run}.log"


@dataclass(frozen=True, slots=True)
class _Live:
    """A run under way."""

    process: asyncio.subprocess.Process
    output: asyncio.StreamReader
    pipe: asyncio.ReadTransport
    session: Session


@dataclass(slots=True)
class Container:
    """A container, run after run."""

    place: Place
    spec: Object
    state: State
    changed: Callable[[], None]
    log: Log | None = None
    _live: _Live | None = None
    _probes: list[asyncio.Task[None]] = field(default_factory=list)
    _stopping: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def folder(self) -> Path:
        return self.place.folder / self.name

    @property
    def running(self) -> bool:
        return self._live is not None

    async def run(self) -> int:
        """Run it once; the exit code. Raises ConfigError when the pod asks for what cannot be had."""
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        env = self._environment()
        launch = self._launch(command_line(self.spec, env), env)
        self._live = live = await self._spawn(launch)
        pump = asyncio.create_task(self._open_log().pump(live.output))
        self._set(self.state.run(self._now()))
        self.place.say("Started", f"Started container {self.name}")
        self._watch()
        try:
            code = await live.process.wait()
            live.session.kill()
            await asyncio.wait([pump], timeout=_DRAIN)
        finally:
            self._close(live, pump)
        self._ended(128 - code if code < 0 else code, launch)
        return self.state.exit_code or 0

    async def stop(self, deadline: float) -> None:
        """Ask it to end, and make it end at the deadline."""
        if self._live:
            self._begin_stop(self._live, deadline)
        if self._stopping:
            await asyncio.wait([self._stopping])

    def kill(self) -> None:
        """End it and all it started, now."""
        if self._live:
            self._live.session.kill()

    async def execute(self, command: list[str], seconds: float = 3600.0) -> tuple[int, str]:
        """Run a command beside it, with its environment, names and mounts; the exit code and what it
        printed.
        """
        launch = self._launch(command, self._environment())
        with launch.with_name("output").open("w+b") as output:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                str(launch),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(seconds):
                    code = await process.wait()
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
                shutil.rmtree(launch.parent, ignore_errors=True)
            output.seek(0)
            return (128 - code if code < 0 else code), output.read().decode(errors="replace")

    def _now(self) -> float:
        return self.place.site.clock.now()

    def _set(self, state: State) -> None:
        self.state = state
        self.changed()

    def _environment(self) -> dict[str, str]:
        place, namespace = self.place, self.place.pod["metadata"]["namespace"]
        granted = place.machine.devices.take(f"{place.uid}/{self.name}", devices.wanted(self.spec))
        if granted is None:
            raise ConfigError(f"node {place.machine.name} has too few free GPUs for container {self.name}")
        env = inherited()
        env["PATH"] = f"{Path(sys.executable).parent}:{env.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
        env |= {"HOSTNAME": place.hostname, MARK: f"{place.uid}/{self.name}"}
        env |= devices.variables(granted)
        found = environment(
            place.pod,
            self.spec,
            place.facts,
            lambda resource, name: place.site.lookup(namespace, resource, name),
        )
        return env | found

    def _launch(self, argv: list[str], env: dict[str, str]) -> Path:
        """What the launcher is to do, in a file only it is to read: the environment may hold secrets."""
        if not argv:
            raise ConfigError("the command is empty")
        place = self.place
        staging = Path(tempfile.mkdtemp(dir=self.folder, prefix="launch-"))
        wanted = mounts(self.spec, place.volumes, env)
        isolate = bool(place.site.isolates)
        if wanted and not isolate:
            raise ConfigError("volumes cannot be mounted: this machine gives processes no private mounts")
        spec = {
            "argv": argv,
            "env": env,
            "cwd": self.spec.get("workingDir") or str(self.folder / "work"),
            "isolate": isolate,
            "hostname": place.hostname,
            "hosts": str(place.folder / "hosts"),
            "staging": str(staging),
            "mounts": wanted,
            "error": str(staging / "error"),
        }
        path = staging / "spec"
        path.touch(mode=0o600)
        path.write_text(json.dumps(spec))
        return path

    async def _spawn(self, launch: Path) -> _Live:
        """Start it with a pipe of our own: asyncio would wait for its pipes to close before it tells of the
        exit.
        """
        ours, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                str(launch),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        session = session_of(process.pid, f"{self.place.uid}/{self.name}")
        session.record(self.place.site.sessions)
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(ours, "rb"))
        return _Live(process, reader, transport, session)

    def _open_log(self) -> Log:
        """A file of its own for each run; of the runs before, the last one is kept."""
        for old in self.folder.glob(f"{self.state.restarts - 2}.log*"):
            old.unlink()
        self.log = Log(log_path(self.folder, self.state.restarts), self.place.site.clock)
        self.log.path.touch()
        return self.log

    def _close(self, live: _Live, pump: asyncio.Task[None]) -> None:
        """The first process was the container: what it leaves behind goes with it."""
        for task in (*self._probes, pump):
            task.cancel()
        self._probes.clear()
        live.session.kill()
        (self.place.site.sessions / str(live.session.leader)).unlink(missing_ok=True)
        live.pipe.close()
        if self.log:
            self.log.close()
        self._live = self._stopping = None

    def _ended(self, code: int, launch: Path) -> None:
        error = launch.with_name("error")
        if error.exists():
            message = error.read_text()
            self.place.say("Failed", f"Error: {message}", "Warning")
            self._set(self.state.exit(_START_ERROR, self._now(), "StartError", message))
        else:
            self._set(self.state.exit(code, self._now()))
        shutil.rmtree(launch.parent, ignore_errors=True)

    def _begin_stop(self, live: _Live, deadline: float) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(live, deadline))

    async def _stop(self, live: _Live, deadline: float) -> None:
        process = live.process
        self.place.say("Killing", f"Stopping container {self.name}")
        hook = ((self.spec.get("lifecycle") or {}).get("preStop") or {}).get("exec")
        if hook:
            with contextlib.suppress(TimeoutError, ConfigError, OSError):
                await self.execute(hook.get("command") or [], max(0.0, deadline - self._now()))
        if process.returncode is None:
            signal_process(process.pid, signal.SIGTERM)
        waiter = asyncio.create_task(process.wait())
        _, late = await asyncio.wait([waiter], timeout=max(0.0, deadline - self._now()))
        live.session.kill()
        if late:
            await waiter

    def _watch(self) -> None:
        if "startupProbe" in self.spec:
            self._probe("startupProbe", self._startup)
        else:
            self._begun()

    def _begun(self) -> None:
        self._set(replace(self.state, started=True, ready="readinessProbe" not in self.spec))
        if "readinessProbe" in self.spec:
            self._probe("readinessProbe", self._readiness)
        if "livenessProbe" in self.spec:
            self._probe("livenessProbe", self._liveness)

    def _probe(self, kind: str, tell: Callable[[bool, str], bool]) -> None:
        probe = Probe(self.spec[kind], self.spec, self.place.facts.pod_ip, self.execute)
        task = asyncio.create_task(probe.watch(tell))
        self._probes.append(task)
        self.place.site.keep(task)

    def _startup(self, good: bool, why: str) -> bool:
        if good:
            self._begun()
        else:
            self._sick("Startup", why)
        return True

    def _readiness(self, good: bool, why: str) -> bool:
        if not good:
            self.place.say("Unhealthy", f"Readiness probe failed: {why}", "Warning")
        self._set(replace(self.state, ready=good))
        return False

    def _liveness(self, good: bool, why: str) -> bool:
        if not good:
            self._sick("Liveness", why)
        return not good

    def _sick(self, kind: str, why: str) -> None:
        self.place.say("Unhealthy", f"{kind} probe failed: {why}", "Warning")
        self.place.say("Killing", f"Container {self.name} failed {kind.lower()} probe, will be restarted")
        if self._live:
            self._begin_stop(self._live, self._now() + self.place.grace)
