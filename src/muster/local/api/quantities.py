"""Quantities as the server writes them back: `1000m` as `1`, `0.5` as `500m`, `1024Mi` as `1Gi`."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_FORMAT = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(m|[numkKMGTPE]i?|[eE][+-]?\d+)?", re.ASCII)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_REGEXP = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """The shortest way to write a quantity without losing digits, in its own notation. Raises ValueError."""
    match = _FORMAT.fullmatch(text)
    if match is None or (match[3] or "") in ("ni", "ui", "ki", "K"):
        raise ValueError(f"quantities must match the regular expression {_REGEXP}")
    sign, digits, suffix = match[1], match[2], match[3] or ""
    number = Decimal(("-" if sign == "-" else "") + digits)
    if suffix in _BINARY:
        return _binary(number * 1024 ** _BINARY[suffix])
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        if abs(int(suffix[1:])) > 30:
            raise ValueError(f"quantities must match the regular expression {_REGEXP}")
        return _exponent(number.scaleb(int(suffix[1:])))
    return _decimal(number.scaleb(_DECIMAL[suffix]))


def _binary(value: Decimal) -> str:
    if value != value.to_integral_value() or (value and abs(value) < 1024):
        return _decimal(value)
    whole, suffix = int(value), ""
    for name in _BINARY:
        if whole == 0 or whole % 1024:
            break
        whole, suffix = whole // 1024, name
    return f"{whole}{suffix}"


def _decimal(value: Decimal) -> str:
    exponent, whole = _reduced(value)
    suffix = next(name for name, power in _DECIMAL.items() if power == exponent)
    return f"{whole}{suffix}"


def _exponent(value: Decimal) -> str:
    exponent, whole = _reduced(value)
    return f"{whole}e{exponent}" if exponent else str(whole)


def _reduced(value: Decimal) -> tuple[int, int]:
    """The value as a whole number times a power of 1000; no quantity is finer than a nano, upwards."""
    nano = int(value.scaleb(9).to_integral_value(ROUND_CEILING))
    if nano == 0:
        return 0, 0
    exponent = -9
    while exponent < 18 and nano % 1000 == 0:
        nano, exponent = nano // 1000, exponent + 3
    return exponent, nano
