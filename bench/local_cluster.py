"""How fast the local cluster is: writes and binds per second, watch fan-out, large lists, memory, start-up.

Server and load generator are separate processes and talk over TLS, as a user's tools would. The load generator
keeps a fixed number of requests under way; rates are wall-clock rates, the server's own CPU time is told beside.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

from bench.measure import Measure

SERVER = """
import asyncio, sys
from pathlib import Path
from muster.local.embedded import Settings, start
async def main():
    directory, power, nodes, pods = Path(sys.argv[1]), sys.argv[2] == "power", int(sys.argv[3]), int(sys.argv[4])
    api = await start(Settings(directory, power_safe=power))
    for i in range(nodes):
        capacity = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
        api.access.create("nodes", {"metadata": {"name": f"node-{i}", "labels": {"rack": f"r{i // 40}"}},
                                    "status": {"capacity": capacity, "allocatable": capacity}})
    sys.path.insert(0, sys.argv[5])
    from bench.local_cluster import pod
    for i in range(pods):
        api.access.create("pods", pod(f"pod-{i}"), "default")
        if i % 500 == 0:
            await asyncio.sleep(0)
    Path(sys.argv[1], "kubeconfig").write_text(api.kubeconfig())
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
UNDER_WAY = 32
PODS = 10_000
WATCHERS = 20


def pod(name: str) -> dict[str, Any]:
    """A worker of a training job, as people write them."""
    container = {
        "name": "worker",
        "image": "registry.example.com/team/trainer:2.3",
        "command": ["torchrun", "--nnodes=8", "--nproc-per-node=8", "train.py"],
        "env": [{"name": f"OPTION_{i}", "value": f"value-{i}"} for i in range(6)],
        "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": "train", "pod-group.scheduling.sigs.k8s.io": "train-1"}
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@dataclass(slots=True)
class Server:
    """A server process and how to reach it."""

    process: subprocess.Popen[str]
    url: str
    token: str
    tls: ssl.SSLContext
    ready_after: float

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(part for part in status.splitlines() if part.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=self.tls)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return aiohttp.ClientSession(self.url, connector=connector, headers=headers, read_bufsize=1 << 20)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def serve(directory: Path, mode: str = "process", nodes: int = 0, pods: int = 0) -> Server:
    root = str(Path(__file__).parent.parent)
    begin = time.perf_counter()
    command = [sys.executable, "-c", SERVER, str(directory), mode, str(nodes), str(pods), root]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise RuntimeError("the server did not start")
    ready_after = time.perf_counter() - begin
    config = yaml.safe_load((directory / "kubeconfig").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=ca)
    return Server(process, cluster["server"], user["token"], tls, ready_after)


async def _rate(
    server: Server, count: int, request: Callable[[aiohttp.ClientSession, int], Awaitable[None]]
) -> tuple[float, float]:
    """Requests per second, and the CPU seconds the server took per thousand."""
    numbers = iter(range(count))
    async with server.session() as session:

        async def worker() -> None:
            for number in numbers:
                await request(session, number)

        cpu, begin = server.cpu_seconds(), time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(UNDER_WAY)))
        elapsed = time.perf_counter() - begin
        return round(count / elapsed), round((server.cpu_seconds() - cpu) / count * 1e6)


async def _create(session: aiohttp.ClientSession, number: int) -> None:
    path = "/api/v1/namespaces/default/pods"
    async with session.post(path, data=orjson.dumps(pod(f"pod-{number}"))) as answer:
        await answer.read()
        assert answer.status == 201, answer.status


async def _bind(session: aiohttp.ClientSession, number: int) -> None:
    binding = {"metadata": {"name": f"pod-{number}"}, "target": {"kind": "Node", "name": f"node-{number % 100}"}}
    path = f"/api/v1/namespaces/default/pods/pod-{number}/binding"
    async with session.post(path, data=orjson.dumps(binding)) as answer:
        await answer.read()
        assert answer.status == 201, answer.status


async def _fan_out(server: Server, count: int) -> float:
    """Events delivered per second to many watchers of all pods, while pods are created."""
    async with server.session() as session, server.session() as watching:
        async with session.get("/api/v1/pods?limit=1") as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]

        async def watch() -> None:
            url = f"/api/v1/pods?watch=1&resourceVersion={version}"
            async with watching.get(url, timeout=aiohttp.ClientTimeout()) as stream:
                seen = 0
                while seen < count:
                    seen += (await stream.content.readany()).count(b'{"type":"')

        watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS)]
        await asyncio.sleep(0.5)
        begin = time.perf_counter()
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                await _create(session, 10_000_000 + number)

        await asyncio.gather(*(worker() for _ in range(UNDER_WAY)))
        await asyncio.gather(*watchers)
        return round(count * WATCHERS / (time.perf_counter() - begin))


async def _list(server: Server) -> float:
    async with server.session() as session:
        begin = time.perf_counter()
        async with session.get("/api/v1/pods") as answer:
            size = len(await answer.read())
        assert size > 0
        return round(time.perf_counter() - begin, 2)


def _start_up() -> float:
    """Seconds from the command to the first answer."""
    with tempfile.TemporaryDirectory() as scratch:
        server = serve(Path(scratch))
        server.stop()
        return round(server.ready_after, 2)


def run() -> list[Measure]:
    start_up = min(_start_up() for _ in range(3))
    return [
        Measure("start-up, to the first answer", start_up, "s", at_most=1),
        *_writes(),
        *_durable_against_power_loss(),
        *_at_scale(),
    ]


def _writes() -> list[Measure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        server = serve(Path(scratch))
        try:
            creates, create_cpu = asyncio.run(_rate(server, PODS, _create))
            binds, bind_cpu = asyncio.run(_rate(server, PODS, _bind))
            events = asyncio.run(_fan_out(server, 2_000))
        finally:
            server.stop()
    return [
        Measure("creates, durable against kill -9", creates, "pods/s", at_least=2_500),
        Measure("server CPU of a create", create_cpu, "us"),
        Measure("binds, durable against kill -9", binds, "pods/s", at_least=3_000),
        Measure("server CPU of a bind", bind_cpu, "us"),
        Measure(f"watch fan-out to {WATCHERS} watchers, with the creates", events, "events/s"),
    ]


def _durable_against_power_loss() -> list[Measure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        server = serve(Path(scratch), "power")
        try:
            creates, _ = asyncio.run(_rate(server, PODS // 4, _create))
        finally:
            server.stop()
    return [Measure("creates, durable against power loss", creates, "pods/s")]


def _at_scale() -> list[Measure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        server = serve(Path(scratch), "process", 5_000, 50_000)
        try:
            memory = server.memory_mib()
            listed = asyncio.run(_list(server))
        finally:
            server.stop()
    return [
        Measure("memory at 5,000 nodes and 50,000 pods", memory, "MiB", at_most=1_536),
        Measure("list of 50,000 pods", listed, "s"),
    ]
