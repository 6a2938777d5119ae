"""An agent's ledger: what its worker does with the GPU, as the worker reports it and the agent sees it."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from muster.elastic.ledger import Bucket, Ledger, account


def _offset() -> float:
    return time.time() - time.monotonic()


@dataclass(slots=True)
class Books:
    gpu: str
    ledger: Ledger
    step: int = 0
    speed: float = 0.0
    skipped: int = 0
    step_seconds: float = 0.0
    offset: float = field(default_factory=_offset)

    def stepped(self, message: dict[str, Any]) -> None:
        self.ledger.stepped(message["at"], message["step"], message["stall"])
        self.step, self.skipped = message["step"], message["skipped"]
        self.step_seconds = message["took"]
        rate = message["batch"] / max(message["took"], 1e-6)
        self.speed = rate if not self.speed else 0.9 * self.speed + 0.1 * rate

    def switch(self, bucket: Bucket) -> None:
        self.ledger.switch(time.monotonic(), bucket)

    def restored(self, step: int) -> None:
        self.ledger.rollback(step)
        self.switch(Bucket.RECONFIGURE)
        self.speed = 0.0

    def report(self) -> dict[str, Any]:
        self.ledger.until(time.monotonic())
        return asdict(account(self.ledger, self.gpu, self.offset))
