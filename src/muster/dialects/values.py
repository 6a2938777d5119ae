"""Values people write into labels and annotations: read them, or say in one line what is wrong.

Nothing here raises: a gang with a typo must be told so, and must not keep others from being read.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from muster.dialects.terms import Problem
from muster.model.topology import Parallelism
from muster.objects.decode import ObjectError
from muster.objects.owners import seconds

V = TypeVar("V")

_INTEGER = re.compile(r"[0-9]{1,9}")
_PART = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|h|m|s|d)")
_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PARALLEL = re.compile(r"\s*(tp|pp|dp)\s*=\s*([1-9][0-9]{0,6})\s*")


class ValueReadError(ValueError):
    """What is wrong with a value and how to write it."""


@dataclass(slots=True)
class Values:
    """Labels or annotations of one object, and the problems found while reading them."""

    where: str
    texts: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def read(self, key: str, parse: Callable[[str], V], *, fatal: bool = False) -> V | None:
        """The parsed value; None where it is absent or, after noting a problem, unreadable."""
        text = self.texts.get(key)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueReadError as problem:
            self.problems.append(Problem(key, f"{self.where} has '{_short(text)}': {problem}", fatal))
            return None


def count(text: str) -> int:
    """A whole number of at least one."""
    number = whole(text)
    if number < 1:
        raise ValueReadError("write a number of at least 1")
    return number


def whole(text: str) -> int:
    """A whole number of at least zero."""
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueReadError("write a whole number such as 4")
    return int(text)


def duration(text: str) -> float:
    """Seconds, or a duration in Go's spelling."""
    stripped = text.strip()
    parts = _PART.findall(stripped)
    if parts and "".join(number + unit for number, unit in parts) == stripped:
        total = sum(float(number) * _UNIT[unit] for number, unit in parts)
    elif _INTEGER.fullmatch(stripped):
        total = float(stripped)
    else:
        raise ValueReadError("write seconds or a duration such as 90s or 2h30m")
    if total <= 0:
        raise ValueReadError("write a duration above zero")
    return total


def moment(text: str) -> float:
    """A point in time."""
    try:
        return seconds(text.strip())
    except (ObjectError, OverflowError) as error:
        raise ValueReadError("write a time such as 2026-08-20T15:28:25Z") from error


def rate(text: str) -> float:
    """A number of at least zero."""
    try:
        number = float(text)
    except ValueError as error:
        raise ValueReadError("write a number such as 0.5") from error
    if not math.isfinite(number) or number < 0:
        raise ValueReadError("write a number of at least 0")
    return number


def flag(text: str) -> bool:
    """`true` or `false`."""
    if text not in {"true", "false"}:
        raise ValueReadError("write 'true' or 'false'")
    return text == "true"


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueReadError(f"write one of {', '.join(words)}")
        return text

    return parse


def decoded(text: str) -> Any:
    """JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueReadError("write JSON") from error


def names(text: str) -> tuple[str, ...]:
    """A JSON array of names, such as `["default/ps", "default/worker"]`."""
    found = decoded(text)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) and each for each in found):
        raise ValueReadError('write a JSON array of names such as ["default/ps", "default/worker"]')
    return tuple(found)


def parallelism(text: str) -> Parallelism:
    """`tp=8,pp=4,dp=16`; what is left out is 1."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _PARALLEL.fullmatch(part)
        if match is None or match[1] in found:
            raise ValueReadError("write it as tp=8,pp=4,dp=16")
        found[match[1]] = int(match[2])
    return Parallelism(**found)


def curve(text: str) -> tuple[tuple[int, float], ...]:
    """A JSON object from members to speed, such as `{"8": 1.0, "16": 1.9}`."""
    found = decoded(text)
    problem = ValueReadError('write a JSON object from members to speed, such as {"8": 1.0, "16": 1.9}')
    if not isinstance(found, dict) or not found:
        raise problem
    points = []
    for size, speed in found.items():
        if not _INTEGER.fullmatch(size) or isinstance(speed, bool) or not isinstance(speed, int | float):
            raise problem
        if int(size) < 1 or not 0 < speed < math.inf:
            raise problem
        points.append((int(size), float(speed)))
    return tuple(sorted(points))


def amounts(text: str) -> tuple[tuple[str, int], ...]:
    """`name=2,other=1`."""
    found = []
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if not equals or not name.strip() or not _INTEGER.fullmatch(number.strip()):
            raise ValueReadError("write it as name=2,other=1")
        found.append((name.strip(), int(number)))
    return tuple(sorted(found))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
