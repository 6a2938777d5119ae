"""Who held what when: each job a box while they are few enough to see, a map of how busy beyond that."""

from collections.abc import Sequence

import numpy as np

from muster.model.node import Node
from muster.sim.outcome import History, Outcome
from muster.sim.report.svg import Frame, line, rect, text, time_axis
from muster.sim.series import mean_level
from muster.sim.slots import Range, Slots
from muster.sim.words import duration

MOST_BOXES = 4000
_COLUMNS = 240
_ROWS = 64
_SHADES = 8
_LETTER, _LINE = 5.8, 13.0
_TINTS = 4


def gantt(history: History, slots: Slots, nodes: Sequence[Node], between: tuple[float, float]) -> str:
    frame = _frame(slots, between)
    lines = _node_lines(frame, slots, nodes)
    label = f"{history.policy}: what each of {len(history.outcomes)} jobs held over time"
    if is_map(slots):
        return frame.svg(label, time_axis(frame), _map(frame, history, slots, between), lines)
    return frame.svg(label, time_axis(frame), _boxes(frame, history, slots, between[0], lines))


def is_map(slots: Slots) -> bool:
    """Whether there are too many boxes to draw each."""
    return sum(len(ranges) for ranges in slots.held) > MOST_BOXES


def _frame(slots: Slots, between: tuple[float, float]) -> Frame:
    height = min(640.0, max(220.0, 40.0 + slots.count * 10.0))
    return Frame(between[1] - between[0], float(max(1, slots.count)), height=height)


def _boxes(frame: Frame, history: History, slots: Slots, begin: float, lines: str) -> str:
    boxes, names = [], []
    for index, (outcome, ranges) in enumerate(zip(history.outcomes, slots.held, strict=True)):
        kind = f"{'back' if outcome.backfilled else 'job'} t{index % _TINTS}"
        title = _title(outcome, slots.asked(outcome)) if ranges else ""
        for held in ranges:
            place = _place(frame, outcome, held, begin)
            boxes.append(rect(*place, kind, title))
            names.append(_name(outcome.job.id, *place))
    return "".join(boxes) + lines + "".join(names)


def _place(frame: Frame, outcome: Outcome, held: Range, begin: float) -> tuple[float, float, float, float]:
    x, end = frame.x((outcome.started or 0.0) - begin), frame.x((outcome.finished or 0.0) - begin)
    y, bottom = frame.y(held[1]), frame.y(held[0])
    return x, y, max(0.6, round(end - x, 2)), max(0.6, round(bottom - y, 2))


def _name(identity: str, x: float, y: float, width: float, height: float) -> str:
    """The job's name where the box has room for it."""
    if width < len(identity) * _LETTER + 4 or height < _LINE:
        return ""
    return text(x + width / 2, y + height / 2 + 4, identity, "name")


def _title(outcome: Outcome, slots: int) -> str:
    started, finished = outcome.started or 0.0, outcome.finished or 0.0
    wait = duration(started - outcome.job.gang.submitted)
    how = ", backfilled" if outcome.backfilled else ""
    return f"{outcome.job.id}: {slots} wide, waited {wait}, ran {duration(finished - started)}{how}"


def _map(frame: Frame, history: History, slots: Slots, between: tuple[float, float]) -> str:
    """Columns of time by rows of slots, shaded by how much of each cell was held; one path per shade."""
    held = [
        (low, high, outcome.started, outcome.finished)
        for outcome, ranges in zip(history.outcomes, slots.held, strict=True)
        for low, high in ranges
    ]
    lows, highs, starts, ends = np.array(held, dtype=np.float64).T
    edges = np.linspace(*between, _COLUMNS + 1)
    size = -(-slots.count // _ROWS)
    grid = []
    for bottom in range(0, slots.count, size):
        top = min(bottom + size, slots.count)
        here = (lows < top) & (highs > bottom)
        amounts = np.minimum(highs[here], top) - np.maximum(lows[here], bottom)
        grid.append(mean_level(starts[here], ends[here], amounts, edges) / (top - bottom))
    shades = np.ceil(np.clip(np.array(grid), 0.0, 1.0) * _SHADES - 0.02).astype(int)
    return "".join(_shade(frame, shades, shade, size) for shade in range(1, _SHADES + 1))


def _shade(frame: Frame, shades: "np.ndarray[tuple[int, int], np.dtype[np.int_]]", shade: int, size: int) -> str:
    """`size` slots make a row; the topmost may have fewer."""
    wide = (frame.width - frame.left - frame.right) / _COLUMNS
    cells = []
    for row in range(len(shades)):
        same = np.concatenate([[0], (shades[row] == shade).astype(int), [0]])
        starts, ends = np.flatnonzero(np.diff(same) == 1), np.flatnonzero(np.diff(same) == -1)
        y = frame.y(min((row + 1) * size, frame.y_end))
        high = frame.y(row * size) - y
        cells += [
            f"M{frame.left + start * wide:.1f} {y:.1f}h{length * wide:.1f}v{high:.1f}h{-length * wide:.1f}z"
            for start, length in zip(starts, ends - starts, strict=True)
        ]
    return f'<path d="{"".join(cells)}" class="heat s{shade}"/>' if cells else ""


def _node_lines(frame: Frame, slots: Slots, nodes: Sequence[Node]) -> str:
    """A line between nodes and their names at the side, thinned out where they would overlap."""
    shown = [node.name for node in nodes if node.capacity.get(slots.unit, 0)]
    if len(shown) == 1:
        ends = ((0, "0"), (slots.count, str(slots.count)))
        return "".join(text(frame.left - 8, frame.y(at) + 4, label, anchor="end") for at, label in ends)
    every = -(-len(shown) * 14 // int(frame.inner))
    parts = []
    for index, name in enumerate(shown):
        low = frame.y(slots.first[name])
        high = frame.y(slots.first[shown[index + 1]] if index + 1 < len(shown) else slots.count)
        if every == 1:
            parts.append(line(frame.left, low, frame.width - frame.right, low, "node"))
        if index % every == 0:
            parts.append(text(frame.left - 8, (low + high) / 2 + 4, name[-14:], anchor="end"))
    return "".join(parts)
