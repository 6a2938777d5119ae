"""The client by itself on loopback: what a bind, a watched event and a cached pod cost.

Rates are per second of this process's own CPU, so that a busy machine and a slow server do not count. The peer
is kubernetes_asyncio, in the same run, if it is installed (`pip install kubernetes_asyncio`).
"""

import asyncio
import gc
import importlib
import importlib.util
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

from bench.measure import Measure, repeated
from muster.kube.access import Access
from muster.kube.cache import Cache
from muster.kube.feed import Feed
from muster.kube.paths import PODS
from muster.kube.requests import Client, Outcome
from muster.kube.transport import Transport
from muster.objects.pods import Pod

BINDS, IN_FLIGHT = 4000, 32
CACHED, EVENTS = 20_000, 20_000
PEER = "kubernetes_asyncio"

Bind = Callable[[int], Awaitable[None]]


@contextmanager
def stub(pods: int, events: int) -> Iterator[str]:
    """The server in a process of its own; its address."""
    command = [sys.executable, "-m", "bench.kube_stub", str(pods), str(events)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def run() -> list[Measure]:
    """All measures."""
    with stub(CACHED, EVENTS) as url:
        ours = repeated(lambda: asyncio.run(_binds(url)))
        peer = repeated(lambda: asyncio.run(_peer_binds(url))) if importlib.util.find_spec(PEER) else None
        listed, watched = asyncio.run(_feed(url))
        size = asyncio.run(_memory(url))
    lines = [Measure("binds per CPU second", ours, "1/s", at_least=6000, peer=peer, peer_name=PEER)]
    loop = _uvloop()
    if loop is not None:
        with stub(1, 0) as url:
            fast = repeated(lambda: loop(_binds(url)))
        lines.append(Measure("binds per CPU second, uvloop", fast, "1/s"))
    return [
        *lines,
        Measure("pods listed per CPU second", listed, "1/s", at_least=20_000),
        Measure("watch events per CPU second", watched, "1/s", at_least=10_000),
        Measure("memory per cached pod", size, "bytes", at_most=8000),
    ]


def _uvloop() -> Callable[[Any], float] | None:
    if not importlib.util.find_spec("uvloop"):
        return None
    runner: Callable[[Any], float] = importlib.import_module("uvloop").run
    return runner


async def _rate(bind: Bind) -> float:
    """Binds per CPU second with so many in flight."""
    left = iter(range(BINDS))

    async def one_after_the_other() -> None:
        for index in left:
            await bind(index)

    await bind(0)
    started = process_time()
    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))
    return BINDS / (process_time() - started)


async def _binds(url: str) -> float:
    client = Client(Transport(Access(url), limit=IN_FLIGHT))

    async def bind(index: int) -> None:
        result = await client.bind("team", f"pod-{index}", f"{index:036}", f"node-{index}")
        assert result.outcome is Outcome.DONE

    try:
        return await _rate(bind)
    finally:
        await client.transport.close()


async def _peer_binds(url: str) -> float:
    peer = importlib.import_module("kubernetes_asyncio.client")
    async with peer.ApiClient(peer.Configuration(host=url)) as connection:
        core = peer.CoreV1Api(connection)

        async def bind(index: int) -> None:
            body = peer.V1Binding(
                metadata=peer.V1ObjectMeta(name=f"pod-{index}", namespace="team", uid=f"{index:036}"),
                target=peer.V1ObjectReference(api_version="v1", kind="Node", name=f"node-{index}"),
            )
            answer = await core.create_namespaced_pod_binding(f"pod-{index}", "team", body, _preload_content=False)
            await answer.read()

        return await _rate(bind)


async def _feed(url: str) -> tuple[float, float]:
    """Pods listed and events taken, per CPU second, into a cache with one handler."""
    cache, client = Cache[Pod](), Client(Transport(Access(url)))
    heard = 0
    done = asyncio.Event()

    def handler(_: object) -> None:
        nonlocal heard
        heard += 1
        if heard == CACHED + EVENTS:
            done.set()

    cache.handlers.append(handler)
    started = process_time()
    task = asyncio.create_task(Feed(client, PODS.path(), Pod, cache, watch_list=False).run())
    await cache.synced.wait()
    listed = process_time()
    await done.wait()
    watched = process_time()
    task.cancel()
    await client.transport.close()
    return CACHED / (listed - started), EVENTS / (watched - listed)


async def _memory(url: str) -> float:
    """Bytes that stay allocated per pod of a cache."""
    client = Client(Transport(Access(url)))
    gc.collect()
    tracemalloc.start()
    cache = Cache[Pod]()
    cache.replace((await client.list(PODS.path(), Pod)).items)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await client.transport.close()
    return size / len(cache.objects)
