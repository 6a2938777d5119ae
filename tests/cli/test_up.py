"""`muster up`, `down` and `status`, as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli.main import main
from muster.local import presence


def up(home: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "muster", "up", "--kubeconfig", str(home / "kc"), "--port", "0", "--no-scheduler"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("The cluster is up at https://127.0.0.1:")
    assert process.stdout.readline() == f"  export KUBECONFIG={home / 'kc'}\n"
    return process


def ended(process: subprocess.Popen[str]) -> int:
    code = process.wait(timeout=60)
    if process.stdout is not None:
        process.stdout.close()
    return code


def say(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_cluster_comes_up_tells_of_itself_and_goes_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--kubeconfig", str(tmp_path / "kc"))
    process = up(tmp_path, "--nodes", "3", "--data", str(tmp_path / "data"))
    code, told = say(capsys, "status", *where)
    assert code == 0 and "nodes: 3, 3 ready" in told and "pods: none" in told
    code, told = say(capsys, "up", *where)
    assert code == 2 and "a cluster already runs behind" in told and told.count("\n") == 1
    code, told = say(
        capsys, "up", "--kubeconfig", str(tmp_path / "other"), "--data", str(tmp_path / "data"), "--port", "0"
    )
    assert code == 2 and "is in use by another cluster" in told
    code, told = say(capsys, "down", *where)
    assert code == 0 and "has stopped" in told
    assert ended(process) == 0
    assert say(capsys, "status", *where)[0] == 1
    assert say(capsys, "down", *where)[0] == 1


def test_ctrl_c_stops_it_cleanly_and_its_state_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--data", str(tmp_path / "data"))
    first = up(tmp_path, "--nodes", "2", *data)
    os.kill(first.pid, signal.SIGINT)
    assert ended(first) == 0
    assert not presence.note_of(tmp_path / "kc").exists()
    second = up(tmp_path, "--nodes", "0", *data)
    assert "nodes: 2, 2 ready" in say(capsys, "status", "--kubeconfig", str(tmp_path / "kc"))[1]
    second.terminate()
    assert ended(second) == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--nodes", "-1"), "--nodes -1: must not be negative"),
        (("--memory", "lots"), "--memory: quantity 'lots'"),
        (("--cluster", "none.yaml"), "none.yaml: No such file or directory"),
        (("--token-file", "none"), "--token-file none: No such file or directory"),
        (("--listen", "0.0.0.0"), "listening on 0.0.0.0 lets other machines in"),
    ],
)
def test_bad_options_get_one_line(
    words: tuple[str, ...], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = say(capsys, "up", "--kubeconfig", str(tmp_path / "kc"), "--port", "0", *words)
    assert code == 2 and complaint in told and told.count("\n") == 1


def test_a_folder_as_kubeconfig_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--kubeconfig", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"muster up: --kubeconfig {tmp_path}: is a folder; name the file to write\n"
