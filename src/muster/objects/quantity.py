"""Kubernetes quantities (`500m`, `1.5Gi`, `12e6`) as exact integers.

A scheduler that rounds differently from the API server promises room that is not there, so amounts are never
floats: a quantity is an integer times a power of ten, rounded up (away from zero) to nano as Kubernetes does
when it parses one, and rounded up again when whole or milli units are asked for. Sums over containers must
be taken in milli-units and rounded once, at the end: `milli_units` gives those without the 64-bit limit.
"""

import functools
import re
from dataclasses import dataclass
from typing import Literal

MAX_INT64 = 2**63 - 1
# Beyond any number a person means; keeps `1e999999999` from being written out digit by digit.
_HUGE = 10**40
_HUGE_DIGITS = 40

Format = Literal["decimal", "binary", "exponent"]
Raw = str | int | float  # what JSON may hold where Kubernetes expects a quantity

_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ["", *_BINARY]


class QuantityError(ValueError):
    """Text that is not a Kubernetes quantity; the message names it."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`number` x 10^`exponent`, and the family of suffixes it was written with."""

    number: int
    exponent: int
    format: Format = "decimal"

    def value(self) -> int:
        """Whole units, rounded up, kept within 64 bits."""
        return _within_int64(_scaled(self, 0))

    def milli(self) -> int:
        """Thousandths, rounded up, kept within 64 bits."""
        return _within_int64(_scaled(self, -3))

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that loses nothing."""
        if self.number == 0:
            return "0"
        if self.format == "binary" and (whole := self._whole()) is not None and abs(whole) >= 1024:
            return _binary_text(whole)
        return _decimal_text(self.number, self.exponent, with_suffix=self.format != "exponent")

    def _whole(self) -> int | None:
        if self.exponent >= 0:
            return self.number * int(10**self.exponent)
        whole, fraction = divmod(self.number, 10**-self.exponent)
        return None if fraction else whole


def parse_quantity(raw: Raw) -> Quantity:
    """Parse what JSON may hold where Kubernetes expects a quantity."""
    if isinstance(raw, str):
        return _parse(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise QuantityError(f"quantity {raw!r}: must be text or a number")
    return _parse(str(raw))


@functools.lru_cache(maxsize=1 << 16)
def milli_units(raw: Raw) -> int:
    """Thousandths of the base unit, rounded up, not limited to 64 bits: what sums are taken in.

    Cached because a cluster writes the same few quantities a hundred thousand times.
    """
    return _scaled(parse_quantity(raw), -3)


def amount(resource: str, milli: int) -> int:
    """What the scheduler counts: thousandths of a core for cpu, whole base units for everything else."""
    return _within_int64(milli if resource == "cpu" else -(-milli // 1000))


def format_amount(resource: str, value: int) -> str:
    """The canonical text of an amount, the way people write it: binary suffixes for bytes."""
    if resource == "cpu":
        return str(Quantity(value, -3))
    in_bytes = resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-")
    return str(Quantity(value, 0, "binary" if in_bytes else "decimal"))


def _parse(text: str) -> Quantity:
    stripped = text.strip()
    if not stripped:
        raise QuantityError("quantity '': is empty; write a number such as 2, 500m or 16Gi")
    sign, whole, fraction, suffix = _groups(stripped)
    try:
        digits = int(whole + fraction or "0")
    except ValueError as error:
        raise QuantityError(f"quantity {text[:40]!r}...: has too many digits") from error
    number = -digits if sign == "-" else digits
    if suffix in _DECIMAL:
        return _round_to_nano(number, _DECIMAL[suffix] - len(fraction), "decimal")
    if suffix in _BINARY:
        return _binary(number << _BINARY[suffix], -len(fraction))
    if _EXPONENT.fullmatch(suffix) and abs(exponent := _exponent(suffix)) < 2**31:
        return _round_to_nano(number, exponent - len(fraction), "exponent")
    raise QuantityError(
        f"quantity {text[:40]!r}: {suffix[:40]!r} is not a suffix; "
        "use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e3 for thousands"
    )


def _groups(text: str) -> tuple[str, str, str, str]:
    match = _TEXT.fullmatch(text)
    assert match is not None
    sign, whole, fraction, suffix = match.groups(default="")
    return sign, whole, fraction, suffix


def _exponent(suffix: str) -> int:
    # Longer than any 32-bit number, zeros aside: refuse before int() has to read it.
    digits = suffix[1:].lstrip("+-").lstrip("0")
    return 2**31 if len(digits) > 10 else int(suffix[1:])


def _binary(number: int, exponent: int) -> Quantity:
    rounded = _round_to_nano(number, exponent, "binary")
    if abs(_scaled(rounded, 0)) > MAX_INT64:
        return Quantity(MAX_INT64 if number > 0 else -MAX_INT64, 0, "binary")
    if number and abs(rounded.number) < 10**-rounded.exponent:
        return Quantity(rounded.number, rounded.exponent, "decimal")
    return rounded


def _round_to_nano(number: int, exponent: int, form: Format) -> Quantity:
    if exponent >= -9:
        return Quantity(number, exponent, form)
    return Quantity(_shift_down(number, -9 - exponent), -9, form)


def _scaled(quantity: Quantity, exponent: int) -> int:
    """The quantity in units of 10^exponent, rounded up (away from zero)."""
    shift = quantity.exponent - exponent
    if shift < 0:
        return _shift_down(quantity.number, -shift)
    if shift > _HUGE_DIGITS:
        return _HUGE * _sign(quantity.number)
    return quantity.number * int(10**shift)


def _shift_down(number: int, digits: int) -> int:
    if digits > number.bit_length():  # 10^digits is certainly larger: only the rounding is left
        return _sign(number)
    return _sign(number) * -(-abs(number) // int(10**digits))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _within_int64(number: int) -> int:
    """Kubernetes leaves a value past 64 bits undefined; the nearest one at least compares as it should."""
    return max(-MAX_INT64, min(MAX_INT64, number))


def _binary_text(number: int) -> str:
    power = 0
    while number % 1024 == 0:
        number //= 1024
        power += 1
    return f"{number}{_BINARY_SUFFIX[power]}"


def _decimal_text(number: int, exponent: int, *, with_suffix: bool) -> str:
    while number % 10 == 0:
        number //= 10
        exponent += 1
    number *= 10 ** (exponent % 3)
    exponent -= exponent % 3
    if with_suffix and exponent in _DECIMAL_SUFFIX:
        return f"{number}{_DECIMAL_SUFFIX[exponent]}"
    return f"{number}e{exponent}" if exponent else str(number)
