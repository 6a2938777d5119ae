"""Leave no process behind: find everything a container started, however it hid, and end it.

A container's processes share a session, and an environment variable that marks them. The first finds those
that changed their environment, the second those that started a session of their own. Sessions are recorded
on disk, so that the next run of the cluster ends what the last one could not.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "MUSTER_CONTAINER_ID"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Session:
    """The processes of one run of a container; `born` tells its leader from a later process of the same
    number.
    """

    leader: int
    mark: str
    born: str

    def record(self, folder: Path) -> Path:
        path = folder / str(self.leader)
        path.write_text(f"{self.mark}\n{self.born}\n")
        return path

    def members(self) -> Iterator[int]:
        """Every living process of the session, and every one that carries its mark."""
        wanted = f"{MARK}={self.mark}".encode()
        for entry in _PROC.iterdir():
            if entry.name.isdigit() and (self._in_session(entry) or wanted in _environ(entry)):
                yield int(entry.name)

    def kill(self) -> int:
        """Kill all of them, as often as it takes for none to be left; how many there were."""
        killed = 0
        for _ in range(10):
            found = list(self.members())
            for pid in found:
                signal_process(pid, signal.SIGKILL)
            if not found:
                break
            killed += len(found)
        return killed

    def _in_session(self, entry: Path) -> bool:
        fields = _stat(entry)
        return fields[3] == str(self.leader) and fields[0] != "Z" and self._same_leader()

    def _same_leader(self) -> bool:
        """A session outlives its leader, and its number is not given to another process while it does."""
        fields = _stat(_PROC / str(self.leader))
        return fields[0] in ("", "Z") or fields[19] == self.born


def session_of(pid: int, mark: str) -> Session:
    return Session(pid, mark, _stat(_PROC / str(pid))[19])


def end_recorded(folder: Path) -> int:
    """End what an earlier run of the cluster left behind; how many processes that were."""
    killed = 0
    for path in folder.iterdir():
        mark, born, *_ = [*path.read_text().split("\n"), "", ""]
        if mark:
            killed += Session(int(path.name), mark, born).kill()
        path.unlink()
    return killed


def signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _stat(entry: Path) -> list[str]:
    """The fields after the name: state, parent, group, session … and at 19 the time it was started."""
    try:
        text = (entry / "stat").read_text(errors="replace")
    except OSError:
        return [""] * 20
    return text[text.rindex(")") + 2 :].split()


def _environ(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""
