"""Tables with commas and a header: rows whose fields are parsed on demand and say where they are wrong."""

import csv
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from muster.errors import UserError
from muster.sim.readers.source import Source

MOST = 10**9
"""Beyond any count a trace means; keeps sums of amounts within 64 bits."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record. An empty field counts as absent."""

    source: Source
    line: int
    cells: dict[str, str]

    def error(self, field: str, problem: str) -> UserError:
        return self.source.error(self.line, f"{field} is {self.cells.get(field, '')!r}; {problem}")

    def text(self, field: str, default: str = "") -> str:
        return self.cells.get(field, "").strip() or default

    def has(self, field: str) -> bool:
        return bool(self.text(field))

    def number(self, field: str, default: float | None = None, least: float = 0.0) -> float:
        """A finite number of at least `least`; the default where the field is empty, else it is required."""
        text = self.text(field)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least:
            raise self.error(field, f"give a number of at least {least:g}")
        return value

    def positive(self, field: str) -> float:
        value = self.number(field)
        if value <= 0:
            raise self.error(field, "give a number above 0")
        return value

    def optional(self, field: str) -> float | None:
        return self.number(field) if self.has(field) else None

    def whole(self, field: str, default: int | None = None, least: int = 0) -> int:
        value = self.number(field, default, least)
        if not float(value).is_integer() or value > MOST:
            raise self.error(field, f"give a whole number from {least} to {MOST}")
        return int(value)


def header(head: list[str]) -> set[str]:
    """The column names of what may be a table."""
    return {name.strip() for name in head[0].split(",")} if head else set()


def rows(source: Source, known: Collection[str] = ()) -> Iterator[Row]:
    """Every record below the header. With `known`, a column of another name is refused: a slip, perhaps."""
    reader = csv.reader(source.lines, skipinitialspace=True)
    names: list[str] = []
    for cells in _records(source, reader):
        if not names:
            names = [name.strip() for name in cells]
            _check_header(source, names, known)
        elif len(cells) != len(names):
            raise source.error(reader.line_num, f"{len(cells)} fields; the header has {len(names)}")
        else:
            yield Row(source, reader.line_num, dict(zip(names, cells, strict=True)))


def _records(source: Source, reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from (cells for cells in reader if any(cell.strip() for cell in cells))
    except csv.Error as error:
        raise UserError(f"{source.where}: this is not a table with commas: {error}") from None


def _check_header(source: Source, names: list[str], known: Collection[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise source.error(1, f"column {twice!r} is there twice; keep one")
    strange = next((name for name in names if known and name not in known), None)
    if strange is not None:
        raise source.error(1, f"column {strange!r} is not known; columns: {', '.join(known)}")
