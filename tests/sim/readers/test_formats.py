"""Choosing a reader by content, and what is refused before any reader is asked."""

from pathlib import Path

import pytest

from muster.errors import UserError
from muster.sim.readers.formats import read_trace

RECORD = "1 0 5 100 4 -1 -1 4 200 -1 1 7 1 -1 2 -1 -1 -1"


def test_swf_is_known_without_a_comment_and_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(RECORD)
    assert read_trace(str(path)).name == "log"


def test_the_limit_takes_the_first_jobs(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("\n".join(f"{n}{RECORD[1:]}" for n in range(1, 6)))
    assert [job.id for job in read_trace(str(path), limit=2).jobs] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no job to simulate|format is not known"),
        ("; only a comment\n", "there is no job to simulate: .*it has no records"),
        ("colour,taste\n", "line 1: the format is not known from 'colour,taste'; formats: .*docs/traces.md"),
        (f"{RECORD}\n\n{RECORD}\n", "line 3: job '1' is there twice; give every job its own id"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_trace(str(path))


def test_a_limit_below_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    path.write_text(RECORD)
    with pytest.raises(UserError, match="give at least 1"):
        read_trace(str(path), limit=0)
