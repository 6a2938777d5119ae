"""What an agent is told when it is started, as its launcher or its pod's manifest writes it: JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    name: str
    job: str
    authority: str
    command: tuple[str, ...]
    host: str = "127.0.0.1"
    domain: str = ""
    replicas: int = 1
    spare: bool = False
    silence: float = 5.0
    release: float = 1.0  # a worker that has not let go of a broken collective by then is replaced
    attempts: int = 3
    store: str = ""
    durable_every: int = 0
    grace: float = 30.0
    queued: float = 0.0
