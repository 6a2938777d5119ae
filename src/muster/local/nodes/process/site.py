"""What every pod on this machine shares: where its files lie, whom to tell, and what the machine allows."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock
from muster.local.events import Recorder
from muster.local.nodes.process.devices import Devices

LAUNCHER = Path(__file__).with_name("launcher.py")
COMMAND = [sys.executable, "-I", "-S", str(LAUNCHER)]


@dataclass(slots=True)
class Machine:
    """One process node: several may stand for this one machine."""

    name: str
    host: str
    allocatable: Mapping[str, str]
    devices: Devices
    alive: bool = True


@dataclass(slots=True)
class Site:
    """The machine under all process nodes of a cluster."""

    access: Access
    clock: Clock
    root: Path
    recorder: Recorder = field(init=False)
    isolates: bool = True
    loose: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.access, self.clock, "kubelet")
        for folder in (self.pods, self.sessions):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    def keep(self, task: asyncio.Task[None]) -> None:
        """A task nobody waits for until everything ends."""
        self.loose.add(task)
        task.add_done_callback(self.loose.discard)

    def lookup(self, namespace: str, resource: str, name: str) -> Object | None:
        try:
            return self.access.get(resource, namespace, name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def try_isolation(self) -> str:
        """Why pods on this machine get no private names and mounts; "" when they do."""
        trial = self.root / "trial"
        trial.mkdir(exist_ok=True)
        hosts, error = trial / "hosts", trial / "error"
        hosts.write_text("127.0.0.1\tlocalhost\n")
        error.unlink(missing_ok=True)
        mounts = [[str(trial), "/muster-trial/inside", False]]
        spec = {
            "argv": ["true"],
            "env": {"PATH": "/usr/bin:/bin"},
            "cwd": "/",
            "isolate": True,
            "hostname": "trial",
        }
        spec |= {"hosts": str(hosts), "staging": str(trial), "mounts": mounts, "error": str(error)}
        (trial / "spec").write_text(json.dumps(spec))
        subprocess.run([*COMMAND, str(trial / "spec")], check=False, capture_output=True)  # noqa: S603 our own script
        return error.read_text() if error.exists() else ""
