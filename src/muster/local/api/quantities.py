"""Quantities as the server writes them back: `1000m` as `1`, `0.5` as `500m`, `1024Mi` as `1Gi`."""

from __future__ import annotations

from functools import lru_cache

from muster.objects.quantity import Quantity, QuantityError, parse_quantity

_REGEXP = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """A quantity in its shortest form that loses nothing. Raises ValueError."""
    try:
        return str(parse_quantity(text))
    except QuantityError:
        raise ValueError(f"quantities must match the regular expression {_REGEXP}") from None


def written(milli: int, like: str = "") -> str:
    """Thousandths as a quantity, in the notation of another one."""
    if like.endswith("i") and milli % 1000 == 0:
        return str(Quantity(milli // 1000, 0, "binary"))
    return str(Quantity(milli, -3))
