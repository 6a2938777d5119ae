"""The charts beside the Gantt: how full, how long the queue, how long the waits, policies side by side."""

from collections.abc import Sequence

import numpy as np

from muster.sim.metrics import Numbers
from muster.sim.report.svg import Frame, line, nice_step, path, rect, text, time_axis, value_axis
from muster.sim.series import Series
from muster.sim.words import count

WIDE, NARROW = 1080.0, 520.0

_BUCKETS = (0.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0)
_NAMES = ("none", "to 1 min", "to 10 min", "to 1 h", "to 6 h", "to 1 d", "to 7 d", "longer")


def utilisation(data: Series, wide: float = WIDE) -> str:
    frame = Frame(float(data.edges[-1]), 1.0, width=wide, height=180.0)
    return frame.svg(
        "share of the cluster in use over time",
        value_axis(frame, share=True),
        time_axis(frame),
        _area(frame, data.edges, np.minimum(data.busy, 1.0), "busy"),
    )


def queue(data: Series, wide: float = WIDE, top: float = 0.0) -> str:
    """Jobs waiting; `top` lets several charts share one scale."""
    top = top or float(data.waiting.max())
    step = nice_step(max(top, 1.0), 4)
    frame = Frame(float(data.edges[-1]), step * np.ceil(max(top, 1.0) / step), width=wide, height=180.0)
    return frame.svg(
        "jobs waiting over time",
        value_axis(frame),
        time_axis(frame),
        _area(frame, data.edges, data.waiting, "queue"),
    )


def wait_bars(waits: Numbers) -> str:
    """How many jobs waited how long, in buckets people think in."""
    counts = np.bincount(np.searchsorted(_BUCKETS, waits), minlength=len(_NAMES))[: len(_NAMES)]
    frame = Frame(float(len(_NAMES)), float(max(1, counts.max())) * 1.12, height=180.0, left=12.0)
    parts = [line(frame.left, frame.y(0), frame.width - frame.right, frame.y(0))]
    for index, (name, number) in enumerate(zip(_NAMES, counts, strict=True)):
        left, right = frame.x(index + 0.08), frame.x(index + 0.92)
        top = frame.y(float(number))
        if number:
            parts.append(rect(left, top, round(right - left, 2), round(frame.y(0) - top, 2), "bar"))
        parts.append(text((left + right) / 2, top - 5, count(float(number)), "value"))
        parts.append(text((left + right) / 2, frame.height - 12, name))
    return frame.svg("how many jobs waited how long", *parts)


def wait_shares(waits: Sequence[tuple[str, Numbers]]) -> str:
    """One line per policy: the share of jobs that had started after so long a wait."""
    longest = max((float(values.max()) for _, values in waits if len(values)), default=1.0)
    frame = Frame(_log(max(longest, 60.0)), 1.0, height=320.0, right=24.0)
    lines = []
    for index, (_, values) in enumerate(waits):
        ordered = np.sort(values)
        at = np.linspace(0.0, 1.0, 201)
        if len(ordered):
            points = [
                (frame.x(_log(float(value))), frame.y(share))
                for value, share in zip(np.quantile(ordered, at), at, strict=True)
            ]
            lines.append(path([*points, (frame.x(frame.x_end), points[-1][1])], f"curve c{index % 8}"))
    return frame.svg(
        "share of jobs started, by how long they waited",
        value_axis(frame, share=True),
        _log_axis(frame),
        *lines,
    )


def _area(frame: Frame, edges: Numbers, values: Numbers, kind: str) -> str:
    points = []
    for left, right, value in zip(edges, edges[1:], values, strict=False):
        y = frame.y(float(value))
        points += [(frame.x(float(left)), y), (frame.x(float(right)), y)]
    ground = frame.y(0.0)
    outline = [(frame.x(0.0), ground), *points, (frame.x(float(edges[-1])), ground)]
    return path(outline, f"area {kind}", closed=True) + path(points, f"edge {kind}")


def _log(seconds: float) -> float:
    return float(np.log10(1.0 + seconds))


def _log_axis(frame: Frame) -> str:
    marks: tuple[tuple[int, str], ...] = (
        (0, "0"),
        (10, "10 s"),
        (60, "1 min"),
        (600, "10 min"),
        (3600, "1 h"),
        (21600, "6 h"),
        (86400, "1 d"),
    )
    marks += ((604800, "7 d"), (30 * 86400, "30 d"), (365 * 86400, "1 y"))
    parts = []
    for seconds, name in marks:
        if _log(seconds) <= frame.x_end:
            x = frame.x(_log(seconds))
            parts.append(line(x, frame.top, x, frame.height - frame.bottom))
            parts.append(text(x, frame.height - frame.bottom + 16, name))
    return "".join(parts)
