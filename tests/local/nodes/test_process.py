"""Process nodes with real processes: what pods print, how they end, who they find, and that nothing is left
behind.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster.local.api.access import Object
from muster.local.clock import SystemClock
from muster.local.nodes.process.processes import MARK
from muster.local.nodes.running import Running, start_nodes
from muster.local.nodes.template import FAILED, PROCESS, NodeTemplate
from tests.local.cluster import Memory

PYTHON = sys.executable
Story = Callable[["World"], Awaitable[None]]


class World:
    """A process node on this machine and an API in memory."""

    def __init__(self, root: Path) -> None:
        self.memory = Memory()
        self.memory.clock.time = time.time()
        self.root = root
        self.nodes: Running | None = None

    @asynccontextmanager
    async def up(self) -> AsyncIterator[World]:
        capacity = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}
        template = NodeTemplate(kind=PROCESS, prefix="local", capacity=capacity)
        self.nodes = start_nodes(self.memory, [template], SystemClock(), root=self.root)
        try:
            yield self
        finally:
            await self.nodes.stop()

    def pod(self, *command: str, name: str = "p", policy: str = "Never", **spec: Any) -> Object:
        main = {"name": "main", "image": "busybox", "command": list(command), **spec.pop("main", {})}
        metadata = {
            "name": name,
            "namespace": "default",
            "labels": {"app": "test"},
            **spec.pop("metadata", {}),
        }
        whole = {"nodeName": "local-0", "restartPolicy": policy, "containers": [main], **spec}
        return self.memory.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})

    def get(self, name: str = "p") -> Object:
        return self.memory.get("pods", "default", name)

    def phase(self, name: str = "p") -> str:
        return str(self.get(name)["status"]["phase"])

    def container(self, name: str = "p") -> Object:
        found: list[Object] = self.get(name)["status"].get("containerStatuses") or [{"state": {}}]
        return found[0]

    async def until(self, true: Callable[[], object], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, [pod.get("status") for pod in self.memory.list("pods")]
            await asyncio.sleep(0.01)

    async def ended(self, name: str = "p") -> Object:
        await self.until(lambda: self.phase(name) in ("Succeeded", "Failed"))
        return self.get(name)

    async def gone(self, name: str = "p") -> None:
        await self.until(lambda: ("pods", "default", name) not in self.memory.objects)

    async def log(self, name: str = "p", container: str = "", **how: Any) -> str:
        assert self.nodes
        lines = self.nodes.processes.logs("default", name, container, **how)
        return b"".join([line async for line in lines]).decode()

    async def says(self, text: str, name: str = "p") -> None:
        async def wait() -> None:
            assert self.nodes
            seen = ""
            async for line in self.nodes.processes.logs("default", name, follow=True):
                seen += line.decode()
                if text in seen:
                    return
            raise AssertionError(f"it never said {text!r} but {seen!r}")

        await self.until(lambda: self.phase(name) != "Pending")
        await asyncio.wait_for(wait(), 30)

    def events(self) -> list[str]:
        return [event["reason"] for event in self.memory.list("events")]


def marked(pod: Object) -> list[int]:
    """Living processes of a pod."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and f"{MARK}={pod['metadata']['uid']}/".encode() in (entry / "environ").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Story], None]:
    async def play(story: Story) -> None:
        async with World(tmp_path).up() as world:
            await story(world)

    return lambda story: asyncio.run(play(story))


Run = Callable[[Story], None]


def test_a_command_runs_prints_and_succeeds(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("sh", "-c", "echo out; echo err >&2; hostname")
        pod = await w.ended()
        assert await w.log() == "out\nerr\np\n"
        assert pod["status"]["phase"] == "Succeeded"
        assert pod["status"]["podIP"].startswith("127.")
        assert w.container()["state"]["terminated"]["exitCode"] == 0
        assert {"ImageIgnored", "Started"} <= set(w.events())

    run(story)


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        (["sh", "-c", "exit 3"], 3, "Error"),
        (["sh", "-c", "kill -9 $$$$"], 137, "Error"),
        (["no-such-program"], 128, "StartError"),
    ],
)
def test_exit_codes(run: Run, command: list[str], code: int, reason: str) -> None:
    async def story(w: World) -> None:
        w.pod(*command)
        pod = await w.ended()
        state = w.container()["state"]["terminated"]
        assert pod["status"]["phase"] == "Failed"
        assert (state["exitCode"], state["reason"]) == (code, reason)
        if reason == "StartError":
            assert state["message"] == 'exec: "no-such-program": executable file not found in $PATH'

    run(story)


def test_environment_arguments_and_devices(run: Run) -> None:
    async def story(w: World) -> None:
        w.memory.create("configmaps", {"metadata": {"name": "c", "namespace": "default"}, "data": {"K": "v"}})
        env = [
            {"name": "A", "value": "one"},
            {"name": "B", "value": "$(A)-$(NONE)-$$(A)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "K"}}},
        ]
        more = {"env": env, "args": ["$(A)"], "resources": {"limits": {"nvidia.com/gpu": "2"}}}
        script = "import os, sys; print(*map(os.getenv, ('B', 'K', 'CUDA_VISIBLE_DEVICES', 'IP')), sys.argv[1])"
        w.pod(PYTHON, "-c", script, main=more)
        pod = await w.ended()
        assert await w.log() == f"one-$(NONE)-$(A) v 0,1 {pod['status']['podIP']} one\n"

    run(story)


def test_a_missing_config_map_is_waited_for(run: Run) -> None:
    async def story(w: World) -> None:
        source = [{"configMapRef": {"name": "late"}}]
        w.pod("sh", "-c", "echo $X", main={"envFrom": source})
        await w.until(lambda: "waiting" in w.container()["state"] and "message" in w.container()["state"]["waiting"])
        waiting = w.container()["state"]["waiting"]
        assert waiting == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}
        w.memory.create("configmaps", {"metadata": {"name": "late", "namespace": "default"}, "data": {"X": "there"}})
        await w.ended()
        assert await w.log() == "there\n"

    run(story)


def test_volumes_are_where_they_are_mounted(run: Run) -> None:
    async def story(w: World) -> None:
        w.memory.create("configmaps", {"metadata": {"name": "c", "namespace": "default"}, "data": {"k": "value"}})
        field = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
        volumes = [
            {"name": "scratch", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "c"}},
            {"name": "info", "downwardAPI": {"items": [field]}},
        ]
        mounts = [
            {"name": "scratch", "mountPath": "/muster-test/deep/scratch"},
            {"name": "conf", "mountPath": "/etc/muster-test", "readOnly": True},
            {"name": "info", "mountPath": "/muster-test/info"},
        ]
        first = {
            "name": "init",
            "command": ["sh", "-c", "echo hi > /muster-test/deep/scratch/f"],
            "volumeMounts": mounts,
        }
        script = "cat /muster-test/deep/scratch/f /etc/muster-test/k /muster-test/info/labels"
        script += "; echo x > /etc/muster-test/k"
        w.pod("sh", "-c", script, volumes=volumes, initContainers=[first], main={"volumeMounts": mounts})
        await w.ended()
        shown = await w.log()
        assert shown.startswith('hi\nvalueapp="test"')
        assert "Read-only" in shown
        assert not Path("/muster-test").exists()
        assert not Path("/etc/muster-test").exists()

    run(story)


def test_init_containers_come_first_and_their_failure_is_the_pods(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("echo", "never", initContainers=[{"name": "first", "command": ["sh", "-c", "exit 4"]}])
        pod = await w.ended()
        assert pod["status"]["phase"] == "Failed"
        assert pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
        assert "waiting" in w.container()["state"]

    run(story)


def test_a_sidecar_runs_beside_and_ends_after(run: Run) -> None:
    async def story(w: World) -> None:
        share = [{"name": "s", "mountPath": "/muster-test-s"}]
        side = {
            "name": "side",
            "restartPolicy": "Always",
            "command": ["sh", "-c", "echo ready > /muster-test-s/f; exec sleep 1000"],
            "volumeMounts": share,
        }
        wait = "while ! cat /muster-test-s/f 2>/dev/null; do sleep 0.02; done"
        volumes = [{"name": "s", "emptyDir": {}}]
        w.pod("sh", "-c", wait, initContainers=[side], volumes=volumes, main={"volumeMounts": share})
        pod = await w.ended()
        assert pod["status"]["phase"] == "Succeeded"
        assert await w.log() == "ready\n"
        assert marked(pod) == []

    run(story)


def test_restarts_count_and_the_previous_log_is_kept(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("sh", "-c", "echo run $$$$; exit 1", policy="OnFailure")
        await w.until(lambda: w.container().get("restartCount") == 1 and "waiting" in w.container()["state"])
        assert w.container()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert w.container()["lastState"]["terminated"]["exitCode"] == 1
        current, previous = await w.log(), await w.log(previous=True)
        assert current.startswith("run ")
        assert current != previous
        assert "BackOff" in w.events()
        w.memory.delete("pods", "default", "p")
        await w.gone()

    run(story)


def test_deleting_asks_first(run: Run) -> None:
    async def story(w: World) -> None:
        script = "import signal as s; s.pthread_sigmask(s.SIG_BLOCK, {15}); print('up', flush=True); "
        script += "s.sigwait({15}); print('bye')"
        pod = w.pod(PYTHON, "-c", script, policy="Always", metadata={"finalizers": ["example.com/held"]})
        await w.says("up")
        w.memory.delete("pods", "default", "p")
        await w.ended()
        assert await w.log() == "up\nbye\n"
        assert marked(pod) == []
        w.memory.patch("pods", "default", "p", {"metadata": {"finalizers": None}})
        await w.gone()
        await w.until(lambda: not (w.root / "pods" / pod["metadata"]["uid"]).exists())

    run(story)


def test_who_does_not_listen_is_killed_with_all_it_started(run: Run) -> None:
    async def story(w: World) -> None:
        deaf = "sh -c 'trap \"\" TERM; sleep 1000'"
        script = f"trap '' TERM; setsid sleep 1000 & {deaf} & echo up; while :; do sleep 1; done"
        pod = w.pod("sh", "-c", script)
        await w.says("up")
        await w.until(lambda: len(marked(pod)) >= 4)
        w.memory.delete("pods", "default", "p", grace=1)
        await w.gone()
        assert marked(pod) == []

    run(story)


def test_children_do_not_outlive_their_container(run: Run) -> None:
    async def story(w: World) -> None:
        pod = w.pod("sh", "-c", "setsid sleep 1000 & sleep 1000 & echo done")
        await w.ended()
        assert marked(pod) == []

    run(story)


def test_logs_can_be_followed_cut_and_dated(run: Run) -> None:
    async def story(w: World) -> None:
        w.pod("sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.1; done")
        await w.until(lambda: w.phase() != "Pending")
        assert await w.log(follow=True) == "line 1\nline 2\nline 3\n"
        assert await w.log(tail=1) == "line 3\n"
        assert await w.log(since=time.time() + 60) == ""
        assert (await w.log(timestamps=True)).split("\n")[0].endswith("Z line 1")

    run(story)


def test_probes_decide_readiness_and_restarts(run: Run) -> None:
    async def story(w: World) -> None:
        mounts = [{"name": "s", "mountPath": "/muster-test-p"}]
        probe = {
            "exec": {"command": ["test", "-e", "/muster-test-p/ok"]},
            "periodSeconds": 0.05,
            "failureThreshold": 1,
        }
        alive = {"exec": {"command": ["test", "!", "-e", "/muster-test-p/sick"]}, "periodSeconds": 0.05}
        main = {
            "volumeMounts": mounts,
            "readinessProbe": probe,
            "livenessProbe": {**alive, "failureThreshold": 1},
        }
        volumes = [{"name": "s", "emptyDir": {}}]
        w.pod("sleep", "1000", policy="Always", volumes=volumes, main=main)
        await w.until(lambda: "Unhealthy" in w.events())
        assert not w.container()["ready"]
        folder = w.root / "pods" / w.get()["metadata"]["uid"] / "volumes" / "s"
        (folder / "ok").touch()
        await w.until(lambda: w.container()["ready"])
        (folder / "sick").touch()
        await w.until(lambda: w.container()["restartCount"] >= 1)

    run(story)


GANG = """
import os, socket, sys
rank, port = int(os.environ["RANK"]), int(os.environ["PORT"])
assert socket.gethostbyname(socket.gethostname()) == os.environ["IP"]
if rank == 0:
    server = socket.create_server((os.environ["IP"], port))
    peer, _ = server.accept()
    print("heard", peer.recv(100).decode())
else:
    while True:
        try:
            peer = socket.create_connection((sys.argv[1], port), timeout=5)
            break
        except OSError:
            pass
    peer.sendall(socket.gethostname().encode())
"""


@pytest.mark.parametrize("name", ["train-0.train", "train-0.train.default.svc.cluster.local"])
def test_a_gang_finds_its_peers_by_name(run: Run, name: str) -> None:
    async def story(w: World) -> None:
        for rank in (1, 0):
            env = [
                {"name": "RANK", "value": str(rank)},
                {"name": "PORT", "value": "29600"},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ]
            command = [PYTHON, "-c", GANG, name]
            names = {"hostname": f"train-{rank}", "subdomain": "train"}
            w.pod(*command, name=f"train-{rank}-x", main={"env": env}, **names)
        service = {"clusterIP": "None", "selector": {"app": "test"}}
        w.memory.create("services", {"metadata": {"name": "train", "namespace": "default"}, "spec": service})
        assert (await w.ended("train-1-x"))["status"]["phase"] == "Succeeded"
        assert (await w.ended("train-0-x"))["status"]["phase"] == "Succeeded"
        assert await w.log("train-0-x") == "heard train-1\n"

    run(story)


def test_a_failed_node_kills_without_a_word_and_tells_when_it_is_back(run: Run) -> None:
    async def story(w: World) -> None:
        pod = w.pod("sleep", "1000")
        again = w.pod("sleep", "1000", name="again", policy="Always")
        await w.until(lambda: marked(pod) and marked(again))
        await w.until(lambda: w.phase() == w.phase("again") == "Running")
        w.memory.patch("nodes", None, "local-0", {"metadata": {"annotations": {FAILED: "1h"}}})
        await w.until(lambda: not marked(pod) and not marked(again))
        assert w.phase() == "Running"
        w.memory.patch("nodes", None, "local-0", {"metadata": {"annotations": {FAILED: None}}})
        await w.ended()
        assert w.container()["state"]["terminated"]["exitCode"] == 137
        await w.until(lambda: w.container("again")["restartCount"] == 1 and "running" in w.container("again")["state"])

    run(story)


def test_a_crashed_cluster_leaves_nothing_running_after_it_is_back(tmp_path: Path) -> None:
    async def crash() -> tuple[World, Object]:
        world = World(tmp_path)
        context = world.up()
        await context.__aenter__()
        pod = world.pod("sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000")
        await world.until(lambda: len(marked(pod)) == 3)
        return world, pod

    async def back(old: World, pod: Object) -> None:
        new = World(tmp_path)
        new.memory.objects = old.memory.objects
        async with new.up():
            await new.until(lambda: not marked(pod))
            await new.ended()
            assert new.container()["state"]["terminated"]["message"] == "the node it ran on was restarted"

    loop = asyncio.new_event_loop()
    world, pod = loop.run_until_complete(crash())
    survivors = marked(pod)
    assert survivors
    asyncio.run(back(world, pod))
    assert all(not Path(f"/proc/{pid}").exists() or pid not in marked(pod) for pid in survivors)
    loop.run_until_complete(world.nodes.stop() if world.nodes else asyncio.sleep(0))
    loop.close()
