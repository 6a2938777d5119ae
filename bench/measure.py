"""What a benchmark yields, and how it is repeated."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

REPEATS = 5


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table. `peer` is what someone else's work needs for the same, in the same unit and run."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    peer: float | None = None
    peer_name: str = ""

    @property
    def met(self) -> bool | None:
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least


def repeated(work: Callable[[], float], times: int = REPEATS) -> float:
    """The median of what a benchmark measures; it times itself, so that its preparation does not count."""
    results = []
    for _ in range(times):
        gc.collect()
        results.append(work())
    return median(results)
