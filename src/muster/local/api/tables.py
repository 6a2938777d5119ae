"""Lists as kubectl prints them: the server chooses the columns and fills the cells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
Cells = Callable[[Object], list[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `wide` ones show with `-o wide` only."""

    name: str
    kind: str = "string"
    wide: bool = False
    form: str = ""
    description: str = ""

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.kind,
            "format": self.form,
            "description": self.description or self.name,
            "priority": 1 if self.wide else 0,
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind and how an object fills them."""

    columns: tuple[Column, ...]
    cells: Cells


def layout(columns: str, cells: Cells) -> Layout:
    """Columns by name, between "|"; those after "wide" are wide until "narrow", a trailing "#" marks integers."""
    found: list[Column] = []
    wide = False
    for name in columns.split("|"):
        if name in ("wide", "narrow"):
            wide = name == "wide"
            continue
        kind = "integer" if name.endswith("#") else "string"
        found.append(Column(name.rstrip("#"), kind, wide, "name" if name == "Name" else ""))
    return Layout(tuple(found), cells)


def table(shown: Layout, objects: Iterable[Object], meta: Object, include: str, *, header: bool = True) -> Object:
    """A Table of some objects. `include` is Metadata, Object or None, as clients ask."""
    result: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    result["columnDefinitions"] = [c.definition() for c in shown.columns] if header else None
    result["rows"] = [row(shown, obj, include) for obj in objects]
    return result


def row(shown: Layout, obj: Object, include: str) -> Object:
    cells = shown.cells(obj)
    if include == "None":
        return {"cells": cells}
    if include == "Object":
        return {"cells": cells, "object": obj}
    return {"cells": cells, "object": partial(obj)}


def partial(obj: Object) -> Object:
    """Only the metadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def age(stamp: str | None) -> str:
    """How long ago a timestamp was, the way kubectl says it."""
    if not stamp:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return "<unknown>"
    return duration(time.time() - then)


def between(start: str, end: str | None) -> str:
    first = datetime.fromisoformat(start).timestamp()
    last = datetime.fromisoformat(end).timestamp() if end else datetime.now(UTC).timestamp()
    return duration(last - first)


def duration(length: float) -> str:
    """Two digits of a length of time, in the steps kubectl takes."""
    seconds = int(length)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for below, whole, part, big, small in (
        (600, minutes, seconds % 60, "m", "s"),
        (3600 * 3, minutes, 0, "m", ""),
        (3600 * 8, hours, minutes % 60, "h", "m"),
        (3600 * 48, hours, 0, "h", ""),
        (86400 * 8, days, hours % 24, "d", "h"),
        (86400 * 730, days, 0, "d", ""),
        (86400 * 365 * 8, days // 365, days % 365, "y", "d"),
    ):
        if seconds < below:
            return f"{whole}{big}{part}{small}" if part else f"{whole}{big}"
    return f"{days // 365}y"
