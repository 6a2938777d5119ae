"""A small API server for tests: objects with versions, lists in pages, watches, and faults on order.

It speaks HTTP on a real socket, so that cuts, stalls and TLS are real ones. What it knows of Kubernetes is
only what the client relies on.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from muster.kube.access import Access, Credentials, Fixed, Grant, Trust
from muster.kube.backoff import Backoff
from muster.kube.requests import Client
from muster.kube.transport import Transport

Object = dict[str, Any]
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
QUICK = Backoff(0.001, 0.01)


def status(code: int, reason: str = "", message: str = "no", **details: Any) -> Object:
    """A Status body."""
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    } | details


def refuse(code: int, reason: str = "", message: str = "no", after: str = "", **details: Any) -> Answer:
    """A fault: answer with this Status."""

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        headers = {"Retry-After": after} if after else {}
        return web.json_response(status(code, reason, message, **details), status=code, headers=headers)

    return answer


async def cut(request: web.BaseRequest) -> web.StreamResponse:
    """A fault: the connection ends without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut_in_body(request: web.BaseRequest) -> web.StreamResponse:
    """A fault: the connection ends in the middle of the answer."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"kind":')
    return await cut(request)


async def stall_in_body(request: web.BaseRequest) -> web.StreamResponse:
    """A fault: the answer begins, and then nothing more comes."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"kind":')
    return await stall(request)


async def stall(_: web.BaseRequest) -> web.StreamResponse:
    """A fault: no answer ever."""
    await asyncio.sleep(3600)
    return web.Response()


@dataclass(slots=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def tree(self) -> Any:
        """The body decoded."""
        return json.loads(self.body)


@dataclass(slots=True)
class Stub:
    """Objects by path, everything that happened, and the faults still to come."""

    version: int = 1
    objects: dict[str, Object] = field(default_factory=dict)
    history: list[tuple[int, str, str, Object]] = field(default_factory=list)
    oldest: int = 0
    watch_list: bool = True
    kinds: set[str] = field(default_factory=lambda: {"pods", "nodes", "leases", "events"})
    asked: list[Asked] = field(default_factory=list)
    faults: list[tuple[str, Answer]] = field(default_factory=list)
    authorize: Callable[[web.BaseRequest], bool] = lambda _: True
    after: Callable[[Asked], None] = lambda _: None
    url: str = ""
    chunk: int = 0
    watchers: list[tuple[web.BaseRequest, web.StreamResponse]] = field(default_factory=list)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, path: str, tree: Object | None = None) -> Object:
        """Create or change an object as if somebody else did."""
        known = self.objects.get(path)
        self.version += 1
        parts = path.split("/")
        space = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        tree = json.loads(json.dumps(tree or {}))
        meta = tree.setdefault("metadata", {})
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        meta |= {"name": parts[-1], "namespace": space, "uid": uid, "resourceVersion": str(self.version)}
        self.objects[path] = tree
        self._note("MODIFIED" if known else "ADDED", path, tree)
        return tree

    def drop(self, path: str) -> None:
        """Delete an object as if somebody else did."""
        self.version += 1
        tree = json.loads(json.dumps(self.objects.pop(path)))
        tree["metadata"]["resourceVersion"] = str(self.version)
        self._note("DELETED", path, tree)

    def compact(self) -> None:
        """Forget the past: whoever asks for it is told 410."""
        self.oldest = self.version

    def cut_watches(self) -> None:
        """End all watches at once, wherever they are."""
        for request, _ in self.watchers:
            if request.transport is not None:
                request.transport.abort()

    async def cut_watches_in_line(self) -> None:
        """End all watches in the middle of a line."""
        for request, response in list(self.watchers):
            await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"hal')
            if request.transport is not None:
                request.transport.close()

    async def tell_watches(self, line: Object) -> None:
        """Send a line of our choice to all watches."""
        for _, response in list(self.watchers):
            await response.write(json.dumps(line).encode() + b"\n")

    def _note(self, kind: str, path: str, tree: Object) -> None:
        self.history.append((self.version, kind, path, tree))
        self._moved.set()
        self._moved = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        body = await request.read()
        asked = Asked(request.method, request.path, dict(request.query), dict(request.headers), body)
        self.asked.append(asked)
        try:
            if not self.authorize(request):
                return await refuse(401, "Unauthorized")(request)
            for index, (needle, fault) in enumerate(self.faults):
                if needle in f"{request.method} {request.path}?{request.query_string}":
                    del self.faults[index]
                    return await fault(request)
            return await self._answer(request, asked)
        finally:
            self.after(asked)

    async def _answer(self, request: web.BaseRequest, asked: Asked) -> web.StreamResponse:
        if asked.query.get("watch"):
            return await self._watch(request, asked)
        tree = self._do(asked)
        return web.json_response(tree, status=tree.get("code", 200) if tree.get("kind") == "Status" else 200)

    def _do(self, asked: Asked) -> Object:
        if asked.path in self.objects:
            return self._one(asked)
        owner, _, part = asked.path.rpartition("/")
        if asked.method == "POST" and owner in self.objects:
            return self._part(asked, owner, part)
        if part not in self.kinds:
            return status(404, "NotFound")
        return self._create(asked) if asked.method == "POST" else self._list(asked)

    def _one(self, asked: Asked) -> Object:
        tree = self.objects[asked.path]
        if asked.method == "DELETE":
            uid = asked.tree.get("preconditions", {}).get("uid")
            if uid and uid != tree["metadata"]["uid"]:
                return status(409, "Conflict")
            self.drop(asked.path)
            return tree
        if asked.method in ("PUT", "PATCH"):
            version = asked.tree.get("metadata", {}).get("resourceVersion")
            if version and version != tree["metadata"]["resourceVersion"]:
                return status(409, "Conflict")
            return self.put(asked.path, merged(tree, asked.tree) if asked.method == "PATCH" else asked.tree)
        return tree

    def _part(self, asked: Asked, owner: str, part: str) -> Object:
        tree = self.objects[owner]
        meta = asked.tree["metadata"] if part == "binding" else asked.tree["deleteOptions"]["preconditions"]
        if meta["uid"] != tree["metadata"]["uid"]:
            return status(409, "Conflict", "the UID differs")
        if part == "eviction":
            self.drop(owner)
        elif tree.get("spec", {}).get("nodeName"):
            return status(409, "Conflict", "already assigned to a node")
        else:
            self.put(owner, merged(tree, {"spec": {"nodeName": asked.tree["target"]["name"]}}))
        return {"kind": "Status", "status": "Success", "code": 201}

    def _create(self, asked: Asked) -> Object:
        path = f"{asked.path}/{asked.tree['metadata']['name']}"
        if path in self.objects:
            return status(409, "AlreadyExists")
        return self.put(path, asked.tree)

    def _list(self, asked: Asked) -> Object:
        token = asked.query.get("continue", "")
        start, version = (int(each) for each in token.split("-")) if token else (0, self.version)
        if version < self.oldest:
            return status(410, "Expired")
        found = self._state(asked.path, version)
        limit = int(asked.query.get("limit", "0")) or len(found) or 1
        rest = f"{start + limit}-{version}" if start + limit < len(found) else ""
        return {
            "metadata": {"resourceVersion": str(version), "continue": rest},
            "items": found[start : start + limit],
        }

    def _state(self, path: str, version: int) -> list[Object]:
        state: dict[str, Object] = {}
        for at, kind, where, tree in self.history:
            if at <= version and selects(path, where):
                state.pop(where, None)
                if kind != "DELETED":
                    state[where] = tree
        return [state[where] for where in sorted(state)]

    async def _watch(self, request: web.BaseRequest, asked: Asked) -> web.StreamResponse:
        version, plural = asked.query.get("resourceVersion", ""), asked.path.rpartition("/")[2]
        if plural not in self.kinds:
            return await refuse(404, "NotFound")(request)
        if asked.query.get("sendInitialEvents") and not self.watch_list:
            return await refuse(422, "Invalid", "sendInitialEvents: Forbidden")(request)
        response = web.StreamResponse()
        await response.prepare(request)
        self.watchers.append((request, response))
        try:
            await self._stream(response, asked.path, version)
        except ConnectionError:
            pass
        finally:
            self.watchers.remove((request, response))
        return response

    async def _stream(self, response: web.StreamResponse, path: str, version: str) -> None:
        at = int(version) if version else self.version
        if not version:
            lines = [{"type": "ADDED", "object": tree} for tree in self._state(path, at)]
            mark: Object = {"resourceVersion": str(at), "creationTimestamp": None}  # as real servers write it
            mark["annotations"] = {"k8s.io/initial-events-end": "true"}
            await self._write(response, [*lines, {"type": "BOOKMARK", "object": {"metadata": mark}}])
        elif at < self.oldest:
            await self._write(response, [{"type": "ERROR", "object": status(410, "Expired")}])
            return
        while True:
            moved = self._moved
            news = [each for each in self.history if each[0] > at and selects(path, each[2])]
            await self._write(response, [{"type": kind, "object": tree} for _, kind, _, tree in news])
            at = self.version
            await moved.wait()

    async def _write(self, response: web.StreamResponse, lines: list[Object]) -> None:
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        step = self.chunk or len(data) or 1
        for start in range(0, len(data), step):
            await response.write(data[start : start + step])


def selects(path: str, where: str) -> bool:
    """Whether an object is in a collection: its own namespace's, or that of all namespaces."""
    root, _, plural = path.rpartition("/")
    collection = where.rpartition("/")[0]
    if "namespaces" in root.split("/"):
        return collection == path
    return where.startswith(root + "/") and collection.rpartition("/")[2] == plural


def merged(tree: Object, patch: Object) -> Object:
    """A merge patch applied."""
    result = dict(tree)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


@asynccontextmanager
async def serving(stub: Stub, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
    """Serve it on loopback; its address."""
    runner = web.ServerRunner(web.Server(stub.handle, handler_cancellation=True), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    _, bound = runner.addresses[0][:2]
    stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{bound}"
    try:
        yield stub.url
    finally:
        stub.cut_watches()
        await runner.cleanup()


def client_of(url: str, credentials: Credentials | None = None, trust: Trust | None = None, **options: Any) -> Client:
    """A client that is quick to try again."""
    access = Access(url, credentials or Fixed(Grant()), trust or Trust())
    return Client(Transport(access, limit=options.pop("limit", 64)), backoff=QUICK, **options)


def run(scenario: Callable[[Stub, Client], Awaitable[None]], **options: Any) -> None:
    """Run a scenario against a fresh stub, with a bound no healthy run comes near."""

    async def main() -> None:
        stub = Stub()
        async with asyncio.timeout(60), serving(stub) as url:
            client = client_of(url, **options)
            try:
                await scenario(stub, client)
            finally:
                await client.transport.close()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, looking often."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.002)
