"""How long to wait before trying again: doubling, with jitter, lest all come back at once."""

import random
from dataclasses import dataclass

LONGEST_ASKED = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between `first` and `most` seconds."""

    first: float = 0.1
    most: float = 30.0

    def pause(self, failures: int, asked: float | None = None) -> float:
        """Seconds to wait after so many failures in a row, and never less than the server asked for.

        What the server asks for is stretched by up to a quarter, because it asks everybody for the same.
        """
        grown = min(self.most, self.first * 2.0 ** min(max(failures - 1, 0), 30))
        own = random.uniform(grown / 2, grown)  # noqa: S311 - jitter, not a secret
        if asked is None:
            return own
        return max(own, min(asked, LONGEST_ASKED) * random.uniform(1.0, 1.25))  # noqa: S311 - jitter
