"""Axes with round numbers on them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from muster.sim.report.svg import Frame, nice_step, time_axis, value_axis


@given(st.floats(1, 1e9))
def test_the_time_axis_has_a_few_ticks_within_the_frame(end: float) -> None:
    frame = Frame(end, 1.0)
    ticks = [float(x) for x in re.findall(r'<text x="([\d.e+]+)"', time_axis(frame))]
    assert 1 <= len(ticks) <= 11
    assert all(frame.left <= x <= frame.width - frame.right + 0.01 for x in ticks)
    assert ticks == sorted(ticks)


@given(st.floats(1e-3, 1e12), st.integers(1, 10))
def test_steps_are_round_and_few(end: float, ticks: int) -> None:
    step = nice_step(end, ticks)
    assert end / step <= ticks * (1 + 1e-6)
    assert f"{step:e}"[0] in "125"


def test_a_share_axis_is_in_percent() -> None:
    assert re.findall(r">(\d+ %)<", value_axis(Frame(1.0, 1.0), share=True)) == [
        "0 %",
        "25 %",
        "50 %",
        "75 %",
        "100 %",
    ]
