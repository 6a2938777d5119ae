"""The HTTP side: who asks, for what, in which form; then the answer or a Status saying why not."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

import orjson
from aiohttp import web

from muster.local.api import documents, pod_logs, rbac, reading, reviews, subresources, watching, writing
from muster.local.api.auth import Authenticator, User
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError, method_not_allowed
from muster.local.api.requests import Target, parse_bool, target, verb
from muster.local.api.writing import Answer, Asked

Object = dict[str, Any]

_LARGEST_BODY = 3 * 1024 * 1024
_JSON = "application/json"
_log = logging.getLogger("muster.local.api")


@dataclass(slots=True)
class ApiServer:
    """A cluster on a socket."""

    cluster: Cluster
    authenticator: Authenticator
    logs: pod_logs.LogReader | None = None
    documents: documents.Documents = field(init=False)
    _watches: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.documents = documents.Documents(self.cluster)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        try:
            return await self._route(request)
        except ApiError as error:
            return _refusal(error)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except sqlite3.Error as error:
            _log.exception("%s %s: the store failed", request.method, request.path)
            return _refusal(ApiError(500, "InternalError", f"the store could not write: {error}"))
        except Exception:
            _log.exception("%s %s", request.method, request.path)
            words = "Internal error occurred: see the log of the cluster"
            return _refusal(ApiError(500, "InternalError", words))

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return web.Response(text="ok")
        user = self._user(request)
        try:
            found = target(self.cluster.catalogue, path)
        except ApiError:
            return self._document(request, user)
        params = request.query
        watching_ = bool(params.get("watch")) and parse_bool(params["watch"])
        self._authorize(user, request.method, found, watching_)
        if request.method in ("GET", "HEAD"):
            return await self._read(request, found, params, watching_)
        body = await _body(request)
        asked = Asked(
            request.method,
            found,
            params,
            body,
            request.headers.get("Content-Type", ""),
            user,
            request.headers.get("User-Agent", ""),
            reading.form(request.headers.get("Accept", ""), params),
        )
        answer = self._write(asked)
        await self.cluster.store.durable()
        return _response(answer)

    def _user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        user = self.authenticator.identify(request.headers.get("Authorization", ""), certificate)
        wanted = request.headers.get("Impersonate-User")
        return self._impersonated(request, user, wanted) if wanted else user

    def _impersonated(self, request: web.BaseRequest, user: User, wanted: str) -> User:
        groups = tuple(request.headers.getall("Impersonate-Group", ()))
        for plural, name in (("users", wanted), *(("groups", group) for group in groups)):
            deed = rbac.Deed("impersonate", "", plural, "", name)
            if not rbac.allowed(self.cluster.store, user, deed):
                raise rbac.refusal(user, deed)
        return User(wanted, groups)

    def _authorize(self, user: User, method: str, found: Target, watching_: bool) -> None:
        resource = found.resource
        deed = rbac.Deed(
            verb(method, found, watching_),
            resource.group,
            resource.plural,
            found.namespace,
            found.name,
            found.subresource,
        )
        if not rbac.allowed(self.cluster.store, user, deed):
            raise rbac.refusal(user, deed)

    def _document(self, request: web.BaseRequest, user: User) -> web.Response:
        """Discovery and OpenAPI: paths that are about no resource."""
        deed = rbac.Deed(request.method.lower(), path=request.path)
        if not rbac.allowed(self.cluster.store, user, deed):
            raise rbac.refusal(user, deed)
        address = request.headers.get("Host", "")
        document = self.documents.get(request.path, request.headers.get("Accept", ""), address)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        etag = f'"{document.etag}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=document.body, headers={**headers, "Content-Type": document.content_type})

    async def _read(
        self, request: web.BaseRequest, found: Target, params: Mapping[str, str], watching_: bool
    ) -> web.StreamResponse:
        if "get" not in found.resource.verbs:
            raise method_not_allowed()
        if found.subresource == "log":
            return await pod_logs.answer(self.cluster, self.logs, found, params, request)
        shown = reading.form(request.headers.get("Accept", ""), params)
        if watching_:
            return await self._watch(request, watching.prepare(self.cluster, found, params, shown))
        await self.cluster.store.durable()
        if not found.name:
            body = reading.many(self.cluster, found, params, shown)
        elif found.subresource in ("", "status"):
            body = reading.one(self.cluster, found, shown)
        else:
            nobody = User("")
            asked = Asked("GET", found, params, b"", "", nobody, "")
            answer = subresources.answer(self.cluster, self.authenticator, asked)
            if answer is None:
                raise method_not_allowed()
            body = answer.body
        return web.Response(body=body, content_type=_JSON)

    async def _watch(self, request: web.BaseRequest, watch: watching.WatchRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        task = asyncio.current_task()
        if task is not None:
            self._watches.add(task)
        try:
            await watch.run(response.write)
            await response.write_eof()
        except ConnectionResetError:
            pass  # the client has gone, which is how watches end
        finally:
            self._watches.discard(task)
            watch.watcher.close()
        return response

    def _write(self, asked: Asked) -> Answer:
        found = asked.target
        if found.resource.group in reviews.GROUPS:
            return reviews.answer(self.cluster, self.authenticator, asked)
        if found.resource.id == "bindings":
            return subresources.bind(self.cluster, asked, "")
        if found.subresource and (answer := subresources.answer(self.cluster, self.authenticator, asked)):
            return answer
        write = _WRITES.get(asked.method)
        if write is None or (asked.method == "POST" and found.subresource):
            raise method_not_allowed()
        return write(self.cluster, asked)

    def end_watches(self) -> None:
        """Let every watcher go, so that a stopping server need not wait for them."""
        for task in self._watches:
            task.cancel()


_WRITES = {
    "POST": writing.create,
    "PUT": writing.update,
    "PATCH": writing.patch,
    "DELETE": writing.delete,
}


async def _body(request: web.BaseRequest) -> bytes:
    if (request.content_length or 0) > _LARGEST_BODY:
        raise _too_large()
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise _too_large()
    return bytes(body)


def _too_large() -> ApiError:
    words = f"Request entity too large: limit is {_LARGEST_BODY}"
    return ApiError(413, "RequestEntityTooLarge", words)


def _response(answer: Answer) -> web.Response:
    response = web.Response(status=answer.status, body=answer.body, content_type=_JSON)
    for warning in answer.warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{_printable(escaped)}"')
    return response


def _printable(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:500]


def _refusal(error: ApiError) -> web.Response:
    response = web.Response(status=error.code, body=orjson.dumps(error.status()), content_type=_JSON)
    if error.code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="muster"'
    if retry := error.details.get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(retry)
    return response


@dataclass(slots=True)
class Listening:
    """A server that accepts connections."""

    server: ApiServer
    runner: web.ServerRunner
    host: str
    port: int

    async def stop(self) -> None:
        self.server.end_watches()
        await self.runner.cleanup()


async def listen(server: ApiServer, host: str, port: int, tls: SSLContext | None) -> Listening:
    """Start to accept connections; port 0 takes any free one."""
    low_level = web.Server(server.handle)
    runner = web.ServerRunner(low_level, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls)
    await site.start()
    actual = runner.addresses[0][1]
    return Listening(server, runner, host, actual)
