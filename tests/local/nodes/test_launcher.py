"""The launcher as root and as an ordinary user: names, mounts where nothing was, and the machine left as it
is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from muster.local.nodes.process.site import LAUNCHER

PYTHON = "/usr/bin/python3"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
USERS = [[], *([NOBODY] if os.getuid() == 0 else [])]

pytestmark = pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs a Python that every user may execute")


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A folder that an ordinary user can reach and write to."""
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.owner() == tmp_path.owner() and "pytest" in str(folder):
            folder.chmod(0o777)
    return tmp_path


def launch(user: list[str], folder: Path, *argv: str, **more: Any) -> tuple[subprocess.CompletedProcess[str], str]:
    launcher = shutil.copy(LAUNCHER, folder / "launcher.py")
    spec = {
        "argv": argv,
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": "/",
        "isolate": True,
        "hostname": "me",
        "mounts": [],
    }
    spec |= {"hosts": str(folder / "hosts"), "staging": str(folder), "error": str(folder / "error"), **more}
    (folder / "hosts").write_text("127.0.0.1 localhost\n127.9.8.7 friend.example friend\n")
    (folder / "spec").write_text(json.dumps(spec))
    command = [*user, PYTHON, "-I", "-S", str(launcher), str(folder / "spec")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    error = folder / "error"
    return done, error.read_text() if error.exists() else ""


@pytest.mark.parametrize("user", USERS, ids=["self", "nobody"][: len(USERS)])
def test_names_resolve_and_the_host_name_is_the_pods(open_path: Path, user: list[str]) -> None:
    done, error = launch(user, open_path, "sh", "-c", "hostname; getent hosts friend; id -u")
    assert (done.stderr, error) == ("", "")
    name, friend, uid = done.stdout.splitlines()
    assert name == "me"
    assert friend.split()[:2] == ["127.9.8.7", "friend.example"]
    assert uid == ("65534" if user else str(os.getuid()))
    assert os.uname().nodename != "me"
    assert "friend" not in Path("/etc/hosts").read_text()


@pytest.mark.parametrize("user", USERS, ids=["self", "nobody"][: len(USERS)])
@pytest.mark.parametrize("target", ["/no-such-root/a/b", "/usr/no-such/inside", "/usr/share"])
def test_a_volume_can_be_mounted_anywhere(open_path: Path, user: list[str], target: str) -> None:
    volume = open_path / "volume"
    volume.mkdir()
    volume.chmod(0o777)
    (volume / "file").write_text("here\n")
    existed = Path(target).exists()
    script = f"cat {target}/file; echo new > {target}/made; ls /usr/bin/env; test -d /proc/self && echo proc"
    done, error = launch(user, open_path, "sh", "-c", script, mounts=[[str(volume), target, False]])
    assert (done.stderr, error) == ("", "")
    assert done.stdout == "here\n/usr/bin/env\nproc\n"
    assert (volume / "made").read_text() == "new\n"
    assert Path(target).exists() == existed


@pytest.mark.parametrize("user", USERS, ids=["self", "nobody"][: len(USERS)])
def test_volumes_nest_and_may_be_read_only(open_path: Path, user: list[str]) -> None:
    for name in ("outer", "inner"):
        (open_path / name).mkdir()
        (open_path / name).chmod(0o777)
    mounts = [
        [str(open_path / "outer"), "/muster-x", False],
        [str(open_path / "inner"), "/muster-x/in", True],
    ]
    script = "echo a > /muster-x/f; echo b > /muster-x/in/f || echo refused"
    done, error = launch(user, open_path, "sh", "-c", script, mounts=mounts)
    assert error == ""
    assert done.stdout == "refused\n"
    assert (open_path / "outer" / "f").exists()
    assert not (open_path / "inner" / "f").exists()


def test_what_cannot_be_started_says_why(open_path: Path) -> None:
    done, error = launch([], open_path, "no-such-program")
    assert (done.returncode, error) == (128, 'exec: "no-such-program": executable file not found in $PATH')
    _, error = launch([], open_path, "true", cwd="/no-such-folder")
    assert error == 'exec: "/no-such-folder": no such directory'
    plain = open_path / "plain"
    plain.touch()
    _, error = launch([], open_path, str(plain))
    assert error == f'exec: "{plain}": Permission denied'
