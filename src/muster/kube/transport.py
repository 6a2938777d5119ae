"""One request, one answer, over aiohttp; and failures told apart by whether anything was sent.

aiohttp stays because of what it does besides speed: TLS, reconnecting, proxies, time-outs, chunked bodies.
Everything it does per request that an API client has no use for is off: cookies, decompression, redirects,
its own headers, its own queue. Figures in docs/kube.md.
"""

import asyncio
import math
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from muster.kube.access import Access, Grant
from muster.kube.errors import ConfigError, LostError, UnsentError, from_status
from muster.objects.decode import from_json

T = TypeVar("T")

CONNECT_SHARE = 0.5  # of a call's time-out may pass before there is a connection
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "muster"}


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer, not yet decoded."""

    status: int
    body: bytes

    def to(self, kind: type[T]) -> T:
        """The object in it."""
        return from_json(self.body, kind)


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be sent, and the latest moment (of the monotonic clock) at which it may still be."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    timeout: float = 10.0
    valid_until: float = math.inf


@dataclass(slots=True)
class Transport:
    """Connections to one API server, at most `limit` requests at a time; streams are not counted."""

    access: Access
    limit: int = 64
    clock: Callable[[], float] = time.monotonic
    _slots: asyncio.Semaphore = field(init=False)
    _session: aiohttp.ClientSession | None = None
    _retired: list[aiohttp.ClientSession] = field(default_factory=list)
    _grant: Grant | None = None
    _headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.limit)

    async def send(self, call: Call) -> Reply:
        """Send it once there is a slot and return the answer; raises ApiError if the answer is no."""
        async with self._slots:
            grant, session = await self._ready()
            reply = await self._once(session, call)
            if reply.status == 401 and self.access.credentials.reject(grant):
                _, session = await self._ready()
                reply = await self._once(session, call)
        if reply.status >= 400:
            raise from_status(reply.body, reply.status, reply.retry_after)
        return Reply(reply.status, reply.body)

    async def _once(self, session: aiohttp.ClientSession, call: Call) -> "_Raw":
        if self.clock() + call.timeout > call.valid_until:
            raise UnsentError("too late: its answer could come after the time until which sending is allowed")
        headers = self._headers
        if call.body is not None:
            headers = {**headers, "Content-Type": call.content_type}
        # aiohttp rounds long time-outs up to a second unless told not to; `valid_until` allows for no more than ours
        limits = aiohttp.ClientTimeout(call.timeout, call.timeout * CONNECT_SHARE, ceil_threshold=math.inf)
        options = self._options()
        with _told_apart(f"{call.method} {call.path.partition('?')[0]}"):
            async with session.request(
                call.method, self._url(call.path), data=call.body, headers=headers, timeout=limits, **options
            ) as response:
                return _Raw(response.status, await response.read(), response.headers.get("Retry-After", ""))

    @asynccontextmanager
    async def stream(self, path: str, quiet: float, timeout: float = 10.0) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of an answer without end; it counts as cut when nothing comes for `quiet` seconds."""
        what = f"GET {path.partition('?')[0]}"
        response = await self._open(what, path, quiet, timeout)
        try:
            yield _chunks(what, response)
        finally:
            response.close()

    async def _open(self, what: str, path: str, quiet: float, timeout: float) -> aiohttp.ClientResponse:
        grant, session = await self._ready()
        limits = aiohttp.ClientTimeout(None, connect=timeout, sock_read=quiet)
        with _told_apart(what):
            async with asyncio.timeout(timeout):
                response = await session.get(self._url(path), headers=self._headers, timeout=limits, **self._options())
                if response.status < 400:
                    return response
                body = await response.read()
        if response.status == 401:
            self.access.credentials.reject(grant)
        raise from_status(body, response.status, response.headers.get("Retry-After", ""))

    async def _ready(self) -> tuple[Grant, aiohttp.ClientSession]:
        """The session of the grant that is good now; another certificate needs other connections."""
        try:
            grant = await self.access.credentials.current()
        except ConfigError as error:
            raise UnsentError(str(error)) from error
        if self._session is None or (grant is not self._grant and self._changes_tls(grant)):
            if self._session is not None:
                self._retired.append(self._session)
            self._session = self._connected_as(grant)
        if grant is not self._grant:
            self._headers = dict(self.access.headers)
            if grant.authorization:
                self._headers["Authorization"] = grant.authorization
            self._grant = grant
        return grant, self._session

    def _changes_tls(self, grant: Grant) -> bool:
        was = self._grant or Grant()
        return (grant.certificate, grant.key) != (was.certificate, was.key)

    def _connected_as(self, grant: Grant) -> aiohttp.ClientSession:
        context = self.access.trust.context(grant) if self.access.server.startswith("https") else False
        connector = aiohttp.TCPConnector(
            limit=0, ssl=context, keepalive_timeout=75, socket_factory=_socket, use_dns_cache=True
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=1 << 18,
        )

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}
        if self.access.trust.server_name:
            options["server_hostname"] = self.access.trust.server_name
        if self.access.proxy:
            options["proxy"] = self.access.proxy
        return options

    def _url(self, path: str) -> URL:
        return URL(self.access.server + path, encoded=True)

    async def close(self) -> None:
        """Drop all connections."""
        for session in [*self._retired, self._session]:
            if session is not None:
                await session.close()
        self._retired.clear()
        self._session = None


@dataclass(frozen=True, slots=True)
class _Raw:
    status: int
    body: bytes
    retry_after: str


@contextmanager
def _told_apart(what: str) -> Iterator[None]:
    """Our errors for those of aiohttp: unsent if there never was a connection, else lost."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
        raise UnsentError(f"{what}: {error or 'no connection in time'}") from error
    except TimeoutError as error:
        raise LostError(f"{what}: no answer in time") from error
    except (aiohttp.ClientError, OSError) as error:
        raise LostError(f"{what}: {error or type(error).__name__}") from error


async def _chunks(what: str, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    while True:
        with _told_apart(what):
            chunk = await response.content.readany()
        if not chunk:
            return
        yield chunk


def _socket(address: Any) -> socket.socket:
    """A socket that notices within half a minute that the other side vanished without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 15),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 30000),
    ):
        if hasattr(socket, name):  # names differ between systems
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    made.setblocking(False)
    return made
