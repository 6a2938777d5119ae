"""The progress bar appears late, on a terminal only, and cleans up after itself."""

import io

import pytest

from muster.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_silent_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Bar("work") as bar:
        bar(1, 2)
    assert screen.getvalue() == ""


def test_it_is_silent_for_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    with progress.Bar("work") as bar:
        bar(1, 2)
    assert screen.getvalue() == ""


def test_it_shows_the_label_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Bar("KTH under easy") as bar:
        bar(1, 2)
    assert "KTH under easy" in screen.getvalue()
    assert "50 %" in screen.getvalue()
