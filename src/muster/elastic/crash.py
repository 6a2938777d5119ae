"""Where tests kill a process, in agents and in workers."""

import os
import signal


def crash_point(name: str) -> None:
    """MUSTER_ELASTIC_CRASH=<point>:<file> kills, once, the first process that gets to the point."""
    wanted, _, path = os.environ.get("MUSTER_ELASTIC_CRASH", "").partition(":")
    if wanted != name:
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
