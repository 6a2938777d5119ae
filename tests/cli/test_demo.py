"""`muster demo`: the deadlock and the busy day are computed, not told."""

from pathlib import Path

import pytest

from muster.cli.main import main


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def test_two_jobs_deadlock_pod_by_pod_and_not_as_gangs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "deadlock"]) == 0
    printed = capsys.readouterr().out
    assert "A holds 2 of 4, B holds 2 of 4: both wait for ever" in printed
    assert printed.count("is bound") == 4
    assert "A starts whole at once" in printed
    assert "B starts whole after 10 min" in printed
    assert "busy day" not in printed


def test_the_busy_day_gets_better_with_every_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for policy in ("fcfs", "easy", "conservative"):
        assert (tmp_path / policy / "report.html").is_file()
        assert any(line.startswith(policy) for line in printed.splitlines())
    assert str(tmp_path / "compare.html") in printed


def test_an_unknown_demo_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "magic"]) == 2
    assert capsys.readouterr().err == (
        "muster demo: there is no demo 'magic'; there is deadlock, and without a name all of it\n"
    )
