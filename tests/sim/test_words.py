"""Lengths of time and shares in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.sim import words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (9.96, "10 s"),
        (59, "59 s"),
        (60, "1 min"),
        (90, "1.5 min"),
        (3600, "1 h"),
        (86400 * 340, "340 d"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@given(st.floats(0, 1e9))
def test_a_duration_is_short(seconds: float) -> None:
    assert len(words.duration(seconds)) <= 10


def test_other_figures() -> None:
    assert words.percent(0.6859) == "68.6 %"
    assert words.count(28481) == "28,481"
    assert (words.ratio(92.577), words.ratio(6814.973)) == ("92.58", "6,815")
