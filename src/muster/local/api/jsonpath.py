"""The corner of JSONPath that printer columns use: `.a.b`, `['a.b']`, `[0]`, `[*]`, `[?(@.x=="y")]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)
    |\[\s*'(?P<quoted>[^']*)'\s*\]
    |\[\s*(?P<index>-?\d+)\s*\]
    |(?P<all>\[\s*\*\s*\]|\.\*)
    |\[\?\(\s*@\.(?P<key>[\w.-]+)\s*==\s*(?P<quote>["'])(?P<value>.*?)(?P=quote)\s*\)\]""",
    re.VERBOSE | re.ASCII,
)


class PathError(ValueError):
    """A path outside the corner this module knows."""


@lru_cache(maxsize=512)
def compiled(path: str) -> Callable[[Any], list[Any]]:
    """A function that finds all values at a path. Raises PathError."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise PathError(f"JSONPath {path!r}: cannot read {text[position:]!r}")
        steps.append(_step(match))
        position = match.end()

    def find(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = step(found)
        return found

    return find


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return lambda found: [
            inner for v in found for inner in (v.values() if isinstance(v, dict) else v if isinstance(v, list) else ())
        ]
    if match["index"]:
        index = int(match["index"])
        return lambda found: [v[index] for v in found if isinstance(v, list) and -len(v) <= index < len(v)]
    if match["key"]:
        inner, value = compiled("." + match["key"]), match["value"]
        return lambda found: [
            item for v in found if isinstance(v, list) for item in v if [str(x) for x in inner(item)] == [value]
        ]
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["name"])
    return lambda found: [v[name] for v in found if isinstance(v, dict) and name in v]
