"""The rendezvous store of an epoch, held by an agent: it survives every worker, and dies with the epoch."""

import threading
import time
from dataclasses import dataclass, field


class Void(OSError):
    """The epoch is over; whoever waited for its keys must let go."""


@dataclass(slots=True)
class KeyValue:
    epoch: int = 0
    values: dict[str, str] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def open(self, epoch: int) -> None:
        """Start the store of a newer epoch; everybody who still waits in an older one is let go."""
        with self.changed:
            if epoch > self.epoch:
                self.epoch = epoch
                self.values.clear()
                self.changed.notify_all()

    def set(self, epoch: int, key: str, value: str) -> None:
        with self.changed:
            self._check(epoch)
            self.values[key] = value
            self.changed.notify_all()

    def add(self, epoch: int, key: str, amount: int) -> int:
        with self.changed:
            self._check(epoch)
            total = int(self.values.get(key, "0")) + amount
            self.values[key] = str(total)
            self.changed.notify_all()
            return total

    def wait(self, epoch: int, keys: list[str], seconds: float) -> list[str] | None:
        """The values once all are there; None if they are not in time."""
        until = time.monotonic() + seconds
        with self.changed:
            while True:
                self._check(epoch)
                if all(k in self.values for k in keys):
                    return [self.values[k] for k in keys]
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self.changed.wait(left)

    def has(self, epoch: int, keys: list[str]) -> bool:
        with self.changed:
            self._check(epoch)
            return all(k in self.values for k in keys)

    def delete(self, epoch: int, key: str) -> bool:
        with self.changed:
            self._check(epoch)
            return self.values.pop(key, None) is not None

    def _check(self, epoch: int) -> None:
        if epoch > self.epoch:  # a member may know of the new epoch before this agent does
            self.epoch = epoch
            self.values.clear()
            self.changed.notify_all()
        elif epoch < self.epoch:
            raise Void(f"epoch {epoch} is over, this is {self.epoch}")
