"""The examples of the documentation run as they stand."""

import re
from pathlib import Path

import pytest

from muster.sim import read_cluster, read_trace
from muster.sim.readers.plain import COLUMNS

ROOT = Path(__file__).parents[2]


def example(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_core_is_used_from_python_in_five_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code = example("simulator.md", "python")
    assert len(code.split("\n\n")[1].splitlines()) <= 5
    exec(code.replace("KTH-SP2.swf.gz", str(Path(__file__).parent / "data" / "tiny.swf")), {})
    assert "Spread(mean=0.0" in capsys.readouterr().out


def test_the_cluster_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(example("cluster-file.md", "yaml"))
    cluster = read_cluster(str(path))
    assert (len(cluster.nodes), cluster.topology.levels) == (33, ("block", "rack"))


def test_the_plain_trace_is_read_and_every_column_is_described(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(example("traces.md", "csv"))
    assert [job.id for job in read_trace(str(path)).jobs] == ["train-1", "tune-1"]
    page = (ROOT / "docs" / "traces.md").read_text()
    assert [column for column in COLUMNS if f"`{column}`" not in page] == []
