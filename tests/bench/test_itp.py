"""The tables of docs/gpu-trace.md, made from a small archive of the same shape."""

import io
import tarfile
from pathlib import Path

import pytest

from bench import itp


def archive(folder: Path) -> str:
    path = folder / "traces.tar.gz"
    head = "job_id,submission_time,duration,num_gpu\n"
    with tarfile.open(path, "w:gz") as tar:
        for number in (1, 2):
            text = head + "".join(f"{i},{i * 100},{200 * number},{1 + i % 12}\n" for i in range(40))
            entry = tarfile.TarInfo(f"cluster{number:02}.csv")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return str(path)


def test_both_tables_have_a_line_for_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(itp, "CLUSTERS", range(1, 3))
    itp.main(archive(tmp_path))
    overall, clusters = capsys.readouterr().out.strip().split("\n\n")
    assert [line.split("|")[1].strip() for line in overall.splitlines()[2:]] == list(itp.POLICIES)
    assert [line.split("|")[1:4] for line in clusters.splitlines()[2:]] == [
        [" 1 ", " 40 ", " 24 "],
        [" 2 ", " 40 ", " 40 "],
    ]
