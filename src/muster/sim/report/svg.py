"""The few shapes the charts are drawn with, and axes with round numbers on them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from muster.sim.words import duration

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_DAYS = (2, 5, 7, 14, 30, 60, 90, 180, 365, 730)
_TIME_STEPS = (*_STEPS, *(days * 86400 for days in _DAYS))
_TICK_ROOM = 100.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The drawing area of a chart: values from 0 to `x_end` and `y_end` mapped into it, y upwards."""

    x_end: float
    y_end: float
    width: float = 1080.0
    height: float = 220.0
    left: float = 92.0
    right: float = 12.0
    top: float = 12.0
    bottom: float = 28.0

    def x(self, value: float) -> float:
        return round(self.left + value / self.x_end * (self.width - self.left - self.right), 2)

    def y(self, value: float) -> float:
        return round(self.height - self.bottom - value / self.y_end * self.inner, 2)

    @property
    def inner(self) -> float:
        return self.height - self.top - self.bottom

    def svg(self, label: str, *parts: str) -> str:
        body = "".join(parts)
        box = f"0 0 {self.width:g} {self.height:g}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{body}</svg>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"'
    return f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>"


def text(x: float, y: float, words: str, kind: str = "tick", anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def path(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> str:
    way = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{way}{"Z" if closed else ""}" class="{kind}"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"/>'


def time_axis(frame: Frame) -> str:
    """Ticks at round times since the first submission, with light lines up through the chart."""
    most = (frame.width - frame.left) / _TICK_ROOM
    step = next((step for step in _TIME_STEPS if frame.x_end / step <= most), frame.x_end / most)
    parts = []
    for index in range(int(frame.x_end / step) + 1):
        x = frame.x(index * step)
        parts.append(line(x, frame.top, x, frame.height - frame.bottom))
        parts.append(text(x, frame.height - frame.bottom + 16, duration(index * step) if index else "0"))
    return "".join(parts)


def value_axis(frame: Frame, *, share: bool = False) -> str:
    """Ticks at round values up the left side; shares are shown in percent."""
    step = 0.25 if share else nice_step(frame.y_end, 4)
    parts = []
    for index in range(int(frame.y_end / step + 1e-9) + 1):
        value = index * step
        y = frame.y(value)
        label = f"{value * 100:g} %" if share else f"{value:,.10g}"
        parts.append(line(frame.left, y, frame.width - frame.right, y))
        parts.append(text(frame.left - 8, y + 4, label, anchor="end"))
    return "".join(parts)


def nice_step(end: float, ticks: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that cuts 0..end into at most `ticks` steps."""
    rough = max(end / ticks, 1e-9)
    power = float(10.0 ** math.floor(math.log10(rough)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
