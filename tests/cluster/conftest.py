"""The cluster these tests drive: one started for them, or any real one named by MUSTER_TEST_KUBECONFIG."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.binder import bind_forever
from tests.cluster.kubectl import Kubectl, binaries

NODES = """
nodes:
- {count: 2, prefix: sim, capacity: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 8}, racks: 2}
- {count: 1, prefix: real, kind: process}
"""


@pytest.fixture(scope="session")
def is_local() -> bool:
    return "MUSTER_TEST_KUBECONFIG" not in os.environ


@pytest.fixture(scope="session")
def kubeconfig(is_local: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not is_local:
        yield Path(os.environ["MUSTER_TEST_KUBECONFIG"])
        return
    home = tmp_path_factory.mktemp("cluster")
    (home / "nodes.yaml").write_text(NODES)
    path = home / "kubeconfig"
    command = [sys.executable, "-m", "muster", "up", "--no-scheduler", "--port", "0"]
    command += ["--kubeconfig", str(path), "--cluster", str(home / "nodes.yaml")]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    assert up.stdout.readline().startswith("The cluster is up at https://127.0.0.1:")
    stop = threading.Event()
    binder = threading.Thread(target=bind_forever, args=(path, stop))
    binder.start()
    yield path
    stop.set()
    binder.join()
    up.terminate()
    assert up.wait(timeout=30) == 0
    up.stdout.close()


@pytest.fixture(params=["oldest", "newest"])
def kubectl(request: pytest.FixtureRequest, kubeconfig: Path, namespace: str) -> Kubectl:
    """Debian's kubectl 1.20, and the newest this machine has."""
    found = binaries()
    if request.param == "newest" and len(found) < 2:
        pytest.skip("this machine has one version of kubectl only")
    return Kubectl(found[0] if request.param == "oldest" else found[-1], kubeconfig, namespace)


@pytest.fixture
def namespace(kubeconfig: Path) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    tool = Kubectl(binaries()[0], kubeconfig, "default")
    tool.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    tool("delete", "namespace", name, "--wait=false")
