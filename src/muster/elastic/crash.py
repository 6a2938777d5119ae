"""Where tests kill a process, in agents and in workers."""

import os
import signal
from pathlib import Path


def crash_point(name: str) -> None:
    """A file of this name in the directory MUSTER_ELASTIC_CRASH kills the first process that gets here,
    once.
    """
    directory = os.environ.get("MUSTER_ELASTIC_CRASH")
    if not directory:
        return
    try:
        Path(directory, name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
