"""`muster node` against a running cluster."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cli.main import main
from muster.local import kubeconfig, whole
from muster.local.embedded import Settings
from muster.local.nodes.template import NodeTemplate
from muster.local.remote import Remote, connect


class Cluster:
    """A cluster in a thread of its own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._whole: whole.Whole = self._do(whole.start(Settings(), [NodeTemplate(count=2)]))
        kubeconfig.write(file, self._whole.api.kubeconfig())

    @property
    def remote(self) -> Remote:
        return connect(self.file)

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def stop(self) -> None:
        self._do(self._whole.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("node") / "kubeconfig")
    yield made
    made.stop()


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def node(cluster: Cluster, *words: str) -> int:
    return main(["node", *words, "--kubeconfig", str(cluster.file)])


def ready(cluster: Cluster, name: str) -> str:
    conditions = cluster.remote.get(f"/api/v1/nodes/{name}")["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def test_a_node_fails_is_missed_and_comes_back(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert node(cluster, "fail", "node-0", "--noticed-after", "1s") == 0
    until(lambda: ready(cluster, "node-0") == "Unknown")
    assert node(cluster, "fail", "node-0") == 2
    assert "has failed already; bring it back with 'muster node recover node-0'" in capsys.readouterr().err
    assert node(cluster, "recover", "node-0") == 0
    until(lambda: ready(cluster, "node-0") == "True")
    until(lambda: "taints" not in cluster.remote.get("/api/v1/nodes/node-0")["spec"])


def test_a_node_is_drained_within_its_budgets(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]}
    metadata = {"name": "web", "labels": {"app": "web"}}
    api = cluster.remote
    api.send("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    api.send("POST", path, budget)
    until(lambda: api.get(f"{path}/b").get("status", {}).get("currentHealthy") == 1)
    done: list[int] = []
    drain = threading.Thread(target=lambda: done.append(node(cluster, "drain", "node-1")))
    drain.start()
    until(lambda: api.get("/api/v1/nodes/node-1")["spec"].get("unschedulable"))
    drain.join(2)
    assert done == []
    api.send("DELETE", f"{path}/b")
    drain.join(60)
    assert done == [0]
    told = capsys.readouterr().out
    assert "default/web has to stay for now: Cannot evict pod as it would violate the pod's disruption budget." in told
    assert told.endswith("evicted default/web\nnode-1 is empty\n")
    assert node(cluster, "recover", "node-1") == 0
    assert "unschedulable" not in api.get("/api/v1/nodes/node-1")["spec"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fail", "no-such"], "there is no node no-such; there are: node-0, node-1"),
        (["fail", "node-0", "--noticed-after", "soon"], "'soon' is not a duration; write for example 90s"),
    ],
)
def test_bad_input_is_told_in_one_line(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert node(cluster, *words) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_a_node_somebody_else_runs_is_not_ours_to_fail(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.remote.send("POST", "/api/v1/nodes", {"metadata": {"name": "theirs"}})
    assert node(cluster, "fail", "theirs") == 2
    assert "not run by the local cluster" in capsys.readouterr().err
    cluster.remote.send("DELETE", "/api/v1/nodes/theirs")


def test_without_a_cluster_it_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kubeconfig"
    assert main(["node", "recover", "x", "--kubeconfig", str(file)]) == 2
    assert "start a cluster with 'muster up'" in capsys.readouterr().err
    file.write_text("- not a kubeconfig")
    assert main(["node", "recover", "x", "--kubeconfig", str(file)]) == 2
    assert "is not a kubeconfig that 'muster up' wrote" in capsys.readouterr().err
    kubeconfig.write(file, kubeconfig.text("http://127.0.0.1:9", None, "t"))
    assert main(["node", "recover", "x", "--kubeconfig", str(file)]) == 2
    assert "no cluster answers at http://127.0.0.1:9" in capsys.readouterr().err
