"""The scheduler killed with -9 in the middle of binding: the next one completes what the API says was begun."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.binder import Call, client
from tests.control.live import indexed

ROUNDS = int(os.environ.get("MUSTER_KILLS", "2"))
MEMBERS = 60
GANGS = 3  # on room for two
NODE_GPUS = 8
PATIENCE = 60.0


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "muster", "up", "--no-scheduler", "--port", "0", "--kubeconfig", str(path)]
    up = subprocess.Popen([*command, "--nodes", "15", "--gpus", str(NODE_GPUS)], stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    assert up.stdout.readline().startswith("The cluster is up")
    yield path
    up.terminate()
    assert up.wait(timeout=30) == 0
    up.stdout.close()


def scheduler(kubeconfig: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "muster", "scheduler", "--kubeconfig", str(kubeconfig)]
    return subprocess.Popen([*command, "--scheduler-name", "default-scheduler"])


def bound(call: Call) -> tuple[Counter[str], Counter[str]]:
    """Members on nodes by gang, and by node."""
    pods = [pod for pod in call("/api/v1/pods")["items"] if pod["spec"].get("nodeName")]
    gangs = Counter(pod["metadata"]["ownerReferences"][0]["name"] for pod in pods)
    return gangs, Counter(pod["spec"]["nodeName"] for pod in pods)


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"did not come to pass: {what}"
        time.sleep(0.02)


def test_no_gang_stays_partial_and_no_node_is_overcommitted(kubeconfig: Path) -> None:
    call = client(kubeconfig)
    chance = random.Random(7)
    for number in range(ROUNDS):
        one_round(call, kubeconfig, number, chance.uniform(0.0, 0.25))


def one_round(call: Call, kubeconfig: Path, number: int, delay: float) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    first = scheduler(kubeconfig)
    for gang in range(GANGS):
        call(jobs, json.loads(json.dumps(indexed(f"gang-{number}-{gang}", MEMBERS))))
    until(lambda: bound(call)[0], "the first member is bound")
    time.sleep(delay)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = scheduler(kubeconfig)
    try:
        until(lambda: sorted(bound(call)[0].values()) == [MEMBERS] * 2, "two gangs are whole, none is partial")
        assert max(bound(call)[1].values()) <= NODE_GPUS
        for gang in range(GANGS):
            call(f"{jobs}/gang-{number}-{gang}", {"propagationPolicy": "Background"}, "DELETE")
        until(lambda: not bound(call)[0], "the gangs are gone")
    finally:
        second.terminate()
        second.wait()
