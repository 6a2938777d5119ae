"""Opening files, compressed files and members of archives, and saying plainly what is wrong with them."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from muster.errors import UserError
from muster.sim.readers.source import open_source


def archive(path: Path, members: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_gz_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "KTH.swf.gz"
    path.write_bytes(gzip.compress(b"one\r\ntwo\n"))
    source = open_source(str(path))
    assert (source.lines, source.name) == (["one", "two"], "KTH")


def test_a_member_is_found_by_name_and_by_number(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {"cluster01.csv": "x", "cluster11.csv": "y", "LICENSE": "z"})
    assert open_source(f"{path}:cluster11.csv").lines == ["y"]
    source = open_source(f"{path}:1")
    assert (source.lines, source.name, source.folder) == (["x"], "cluster01", tmp_path)


def test_a_single_trace_in_an_archive_needs_no_name(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {"only.csv": "x", "LICENSE": "z"})
    assert open_source(str(path)).lines == ["x"]


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("", "it holds several traces; give a.tar.gz:MEMBER, one of: one.csv, two.csv"),
        (
            ":three.csv",
            "there is no member 'three.csv' in it; give a.tar.gz:MEMBER, one of: one.csv, two.csv",
        ),
        (":3", "there is no member '3' in it"),
    ],
)
def test_an_unclear_member_is_answered_with_the_choice(tmp_path: Path, suffix: str, message: str) -> None:
    path = archive(tmp_path / "a.tar.gz", {"one.csv": "x", "two.csv": "y"})
    with pytest.raises(UserError) as caught:
        open_source(f"{path}{suffix}")
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b broken")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "broken.tar.gz").write_bytes(b"no archive")
    cases = {
        "absent.swf": "no such file",
        "": "this is a folder",
        "picture": "this is not text",
        "broken.gz": "cannot be read",
        "broken.tar.gz": "cannot be read",
    }
    for name, message in cases.items():
        with pytest.raises(UserError, match=message):
            open_source(str(tmp_path / name))
