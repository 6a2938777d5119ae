"""The scheduler killed with -9 in the middle of binding: the next one completes what the API says was begun."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.local.cluster_file import read as _read  # noqa: F401 - the cluster under test starts from the command

ROUNDS = int(os.environ.get("MUSTER_KILLS", "3"))
MEMBERS = 60
GANGS = 4
"""Two of them fit at a time."""
PARTIAL_AT_MOST = 10.0
"""Seconds after the next leader has started, its lease aside."""
LEASE = 6.0
PATIENCE = 90.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "muster", "up", "--no-scheduler", "--port", "0", "--kubeconfig", str(kubeconfig)]
    command += ["--nodes", "15", "--gpus", "8", "--cpus", "64"]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    assert up.stdout.readline().startswith("The cluster is up")
    yield kubeconfig
    up.terminate()
    assert up.wait(timeout=30) == 0
    up.stdout.close()
