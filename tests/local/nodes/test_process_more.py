"""Process nodes, less usual wishes: every kind of volume, hooks, deadlines, probes by socket, machines
without isolation.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.local.nodes.process.site import Site
from tests.local.nodes.test_process import Run, Story, World, marked


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Story], None]:
    async def play(story: Story) -> None:
        async with World(tmp_path / "root").up() as world:
            await story(world)

    return lambda story: asyncio.run(play(story))


def test_every_kind_of_volume(run: Run, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "f").write_text("from the host\n")

    async def story(w: World) -> None:
        secret = {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
        w.memory.create("secrets", {**secret, "data": {"key": base64.b64encode(b"secret\n").decode()}})
        w.memory.create("configmaps", {"metadata": {"name": "c", "namespace": "default"}, "data": {"k": "config\n"}})
        name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
        sources = [
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "deep/k"}]}},
            {"secret": {"name": "s"}},
            {"downwardAPI": {"items": [name]}},
        ]
        volumes = [
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
            {"name": "all", "projected": {"sources": sources}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "host")}},
        ]
        mounts = [{"name": volume["name"], "mountPath": f"/muster-v/{volume['name']}"} for volume in volumes]
        mounts.append({"name": "memory", "mountPath": "/muster-v/sub", "subPath": "inner"})
        script = "cd /muster-v; echo x > sub/f; cat memory/inner/f secret/key all/deep/k all/key all/name host/f; "
        script += "echo; df --output=fstype memory | tail -1; stat -c %a secret/key"
        w.pod("sh", "-c", script, volumes=volumes, main={"volumeMounts": mounts})
        await w.ended()
        shown = await w.log()
        assert shown.splitlines() == ["x", "secret", "config", "secret", "pfrom the host", "", "tmpfs", "400"]
        uid = w.get()["metadata"]["uid"]
        w.memory.delete("pods", "default", "p")
        await w.gone()
        await w.until(lambda: not list(Path("/dev/shm").glob(f"muster-{uid}-*")))

    run(story)


def test_a_missing_volume_is_waited_for_and_named(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("true", volumes=[{"name": "v", "secret": {"secretName": "late"}}])
        await w.until(lambda: "FailedMount" in w.events())
        (event,) = [e for e in w.memory.list("events") if e["reason"] == "FailedMount"]
        assert event["message"] == 'MountVolume.SetUp failed: secret "late" not found'
        assert w.phase() == "Pending"
        w.memory.create("secrets", {"kind": "Secret", "metadata": {"name": "late", "namespace": "default"}})
        await w.ended()

    run(story)


def test_the_pre_stop_hook_comes_before_the_signal(run: Run) -> None:
    async def story(w: World) -> None:
        mounts = [{"name": "s", "mountPath": "/muster-h"}]
        hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook > /muster-h/f"]}}}
        script = "import signal as s; s.pthread_sigmask(s.SIG_BLOCK, {15}); print('up', flush=True); "
        script += "s.sigwait({15}); print(open('/muster-h/f').read())"
        main = {"volumeMounts": mounts, "lifecycle": hook}
        volumes = [{"name": "s", "emptyDir": {}}]
        held = {"finalizers": ["example.com/held"]}
        w.pod(sys.executable, "-c", script, volumes=volumes, main=main, metadata=held)
        await w.says("up")
        w.memory.delete("pods", "default", "p")
        await w.ended()
        assert "hook" in await w.log()

    run(story)


def test_a_pod_past_its_deadline_fails(run: Run) -> None:
    async def story(w: World) -> None:
        pod = w.pod("sleep", "1000", policy="Always", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
        ended = await w.ended()
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Failed", "DeadlineExceeded")
        await w.until(lambda: not marked(pod))

    run(story)


def test_probes_by_http_and_tcp(run: Run) -> None:
    async def story(w: World) -> None:
        script = (
            "import http.server as h, os; h.ThreadingHTTPServer((os.environ['IP'], 8099), h.SimpleHTTPRequestHandler)"
        )
        env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        often = {"periodSeconds": 0.05}
        main = {
            "env": env,
            "ports": [{"name": "web", "containerPort": 8099}],
            "startupProbe": {"tcpSocket": {"port": 8099}, "failureThreshold": 600, **often},
            "readinessProbe": {"httpGet": {"port": "web", "path": "/"}, **often},
        }
        w.pod(sys.executable, "-c", f"{script}.serve_forever()", policy="Always", main=main)
        await w.until(lambda: w.container().get("ready"))
        assert w.container()["started"]

    run(story)


def test_a_machine_without_isolation_says_so_and_still_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "try_isolation", lambda _: "unshare: Operation not permitted")

    async def story(w: World) -> None:
        w.pod("echo", "hello")
        await w.ended()
        assert await w.log() == "hello\n"
        assert "NotIsolated" in w.events()
        mounts = [{"name": "s", "mountPath": "/muster-n"}]
        w.pod("true", name="q", volumes=[{"name": "s", "emptyDir": {}}], main={"volumeMounts": mounts})
        await w.until(
            lambda: w.container("q")["state"].get("waiting", {}).get("message", "").startswith("volumes cannot")
        )

    run(story)


def test_a_container_without_a_command_says_what_it_needs(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod(main={"command": [], "args": ["x"]})
        await w.until(lambda: w.container()["state"].get("waiting", {}).get("message"))
        waiting = w.container()["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert "this node runs no images, so the container needs a command" in waiting["message"]

    run(story)


def test_a_command_can_be_run_beside_a_container(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("sleep", "1000", main={"env": [{"name": "A", "value": "b"}]})
        await w.until(lambda: w.phase() == "Running")
        assert w.nodes
        result = await w.nodes.processes.execute("default", "p", "main", ["sh", "-c", "echo $A; hostname; exit 3"])
        assert result == (3, "b\np\n")

    run(story)
