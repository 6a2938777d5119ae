"""An API server for one test, and a client that keeps out of its way."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from muster.local import embedded

TOKEN = "secret"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(slots=True)
class Reply:
    status: int
    body: Any
    headers: Any


@dataclass(slots=True)
class Api:
    """Requests to a server under test."""

    server: embedded.Embedded
    session: aiohttp.ClientSession

    async def __call__(self, method: str, path: str, body: Any = None, *, token: str = TOKEN, **headers: str) -> Reply:
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        sent["Content-Type"] = "application/json"
        sent.update({k.replace("_", "-"): v for k, v in headers.items()})
        data = body if isinstance(body, bytes | io.BytesIO | None) else orjson.dumps(body)
        async with self.session.request(method, path, data=data, headers=sent, skip_auto_headers=["Accept"]) as answer:
            raw = await answer.read()
            decoded = orjson.loads(raw) if raw and "json" in answer.content_type else raw
            return Reply(answer.status, decoded, answer.headers)

    async def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        reply = await self(method, path, body, **headers)
        assert reply.status in (200, 201), reply.body
        return reply.body

    async def refused(self, code: int, method: str, path: str, body: Any = None, **headers: str) -> str:
        """The message of a request that must fail with this code, in a well-formed Status."""
        reply = await self(method, path, body, **headers)
        assert reply.status == code, (reply.status, reply.body)
        assert (reply.body["kind"], reply.body["status"], reply.body["code"]) == ("Status", "Failure", code)
        return str(reply.body["message"])

    async def events(self, path: str, count: int) -> list[Any]:
        """The first events of a watch."""
        found: list[Any] = []
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with asyncio.timeout(30), self.session.get(path, headers=headers) as answer:
            assert answer.status == 200, await answer.read()
            async for line in answer.content:
                found.append(orjson.loads(line))
                if len(found) == count:
                    break
        return found


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Api]:
    server = await embedded.start(embedded.Settings(token=TOKEN, secure=False, **settings))
    try:
        async with aiohttp.ClientSession(server.url, read_bufsize=1 << 22) as session:
            yield Api(server, session)
    finally:
        await server.stop()


def served(scene: Callable[[Api], Awaitable[None]], **settings: Any) -> None:
    """Run a scene against a server of its own."""

    async def play() -> None:
        async with serving(**settings) as api:
            await scene(api)

    asyncio.run(play())


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    body = {"containers": [{"name": "main", "image": "busybox:1.36"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def config(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
