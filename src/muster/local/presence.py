"""Which cluster runs behind a kubeconfig: a note beside the file, written by `up`, read by `down` and `status`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Presence:
    """A running cluster."""

    pid: int
    started: str  # what the system calls the moment the process began; tells it from a namesake
    url: str
    data: str

    @property
    def alive(self) -> bool:
        return birth(self.pid) == self.started != ""


def note_of(kubeconfig: Path) -> Path:
    return kubeconfig.with_name(kubeconfig.name + ".cluster.json")


def leave(kubeconfig: Path, url: str, data: str) -> None:
    """Note that this process is the cluster behind a kubeconfig."""
    mine = Presence(os.getpid(), birth(os.getpid()), url, data)
    note_of(kubeconfig).write_text(json.dumps(asdict(mine)))


def find(kubeconfig: Path) -> Presence | None:
    """The cluster behind a kubeconfig, if one runs."""
    try:
        found = Presence(**json.loads(note_of(kubeconfig).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.alive else None


def clear(kubeconfig: Path) -> None:
    note_of(kubeconfig).unlink(missing_ok=True)


def birth(pid: int) -> str:
    """When a process began, "" when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
