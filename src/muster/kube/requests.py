"""The verbs of the API: read, write, bind, evict; tried again only where that cannot do anything twice.

Tried again are calls that never left, calls the server refused to look at (429), and, if doing them twice is
as good as once, calls that were lost or that broke the server. A bind is not one of those: when its answer is
lost, that is the result (`Outcome.UNKNOWN`), and the caller reads the pod before anything else.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

from muster.kube.backoff import Backoff
from muster.kube.errors import ApiError, KubeError, LostError, UnsentError
from muster.kube.paths import PODS, Resource
from muster.kube.transport import Call, Reply, Transport
from muster.objects.decode import ObjectError, from_json
from muster.objects.owners import ObjectMeta

T = TypeVar("T")

ATTEMPTS = 4
PAGE = 1000


class PatchForm(Enum):
    """How a patch is written; `idempotent` says whether it may be sent twice."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"

    @property
    def is_idempotent(self) -> bool:
        """A JSON patch may add to a list: twice is not once."""
        return self is not PatchForm.JSON


class Outcome(Enum):
    """What became of a call that must not happen twice."""

    DONE = "done"
    REFUSED = "refused"  # the server said no: it did not happen
    UNSENT = "unsent"  # it never left: it did not happen
    UNKNOWN = "unknown"  # it may have happened: read before anything else


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome, and the error that explains any but DONE."""

    outcome: Outcome
    error: KubeError | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of a list, the version it is of, where it goes on, and what of it does not decode."""

    items: list[T]
    version: str
    token: str
    broken: dict[tuple[str, str], str]


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Meta(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_LIST = msgspec.json.Decoder(_List)


@dataclass(slots=True)
class Client:
    """An API server to ask. Every call has its own time-out; how many run at once is the transport's."""

    transport: Transport
    timeout: float = 10.0
    attempts: int = ATTEMPTS
    backoff: Backoff = field(default_factory=lambda: Backoff(0.1, 5.0))

    async def get(self, path: str) -> Reply:
        """Read one object, or anything else."""
        return await self._call(Call("GET", path, timeout=self.timeout), repeatable=True)

    async def list(self, path: str, kind: type[T], *, labels: str = "", fields: str = "", limit: int = PAGE) -> Page[T]:
        """Read all objects, of one version, page by page; the pages joined."""
        items: list[T] = []
        broken: dict[tuple[str, str], str] = {}
        version = ""
        async for page in self.pages(path, kind, labels=labels, fields=fields, limit=limit):
            items += page.items
            broken |= page.broken
            version = page.version
        return Page(items, version, "", broken)

    async def pages(
        self, path: str, kind: type[T], *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncIterator[Page[T]]:
        """Read all objects page by page; 410 is raised when the pages outlived the version they are of."""
        token = ""
        while True:
            query = {
                "labelSelector": labels,
                "fieldSelector": fields,
                "limit": limit or "",
                "continue": token,
            }
            reply = await self.get(f"{path}?{urlencode({name: each for name, each in query.items() if each})}")
            page = _page(reply.body, kind)
            yield page
            token = page.token
            if not token:
                return

    async def create(self, path: str, body: object) -> Reply:
        """Create an object, or post anything that is not idempotent."""
        return await self._call(Call("POST", path, _json(body), timeout=self.timeout), repeatable=False)

    async def replace(self, path: str, body: object) -> Reply:
        """Replace an object; with a resourceVersion in it, only if nobody else did. Sent once."""
        return await self._call(Call("PUT", path, _json(body), timeout=self.timeout), repeatable=False)

    async def patch(
        self,
        path: str,
        body: object,
        form: PatchForm = PatchForm.MERGE,
        *,
        field_manager: str = "",
        force: bool = False,
    ) -> Reply:
        """Change an object; an apply patch needs a field manager, and takes fields over with force."""
        query = {"fieldManager": field_manager, "force": "true" if force else ""}
        asked = urlencode({name: each for name, each in query.items() if each})
        call = Call("PATCH", f"{path}?{asked}" if asked else path, _json(body), form.value, self.timeout)
        return await self._call(call, repeatable=form.is_idempotent)

    async def delete(
        self, path: str, uid: str = "", *, grace: int | None = None, propagation: str = "Background"
    ) -> Reply:
        """Delete an object; with a UID only that very one, which makes it safe to send twice."""
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        call = Call("DELETE", path, _json(options), timeout=self.timeout)
        return await self._call(call, repeatable=bool(uid))

    async def bind(self, namespace: str, name: str, uid: str, node: str, *, valid_until: float = math.inf) -> Result:
        """Give the pod of this UID its node, if that can be sent in time.

        The server is told the time-out too, so that it does not carry out later what was given up here.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"{PODS.path(namespace, name, 'binding')}?timeout={math.ceil(self.timeout)}s"
        call = Call("POST", path, _json(body), timeout=self.timeout, valid_until=valid_until)
        return await self._attempt(call, repeatable=False)

    async def evict(
        self, namespace: str, name: str, uid: str, *, grace: int | None = None, valid_until: float = math.inf
    ) -> Result:
        """Ask the pod of this UID to go, as its disruption budgets allow; refused with 429 if they do not."""
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        path = PODS.path(namespace, name, "eviction")
        call = Call("POST", path, _json(body), timeout=self.timeout, valid_until=valid_until)
        return await self._attempt(call, repeatable=True)

    async def has(self, resource: Resource) -> bool:
        """Whether the API serves this resource, in this version."""
        try:
            known = (await self.get(resource.root)).to(_ResourceList)
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return any(each.name == resource.plural for each in known.resources or ())

    async def _attempt(self, call: Call, *, repeatable: bool) -> Result:
        try:
            await self._call(call, repeatable=repeatable)
        except UnsentError as error:
            return Result(Outcome.UNSENT, error)
        except ApiError as error:
            return Result(Outcome.UNKNOWN if error.is_server_fault else Outcome.REFUSED, error)
        except LostError as error:
            return Result(Outcome.UNKNOWN, error)
        return Result(Outcome.DONE)

    async def _call(self, call: Call, *, repeatable: bool) -> Reply:
        for failures in range(1, self.attempts):
            try:
                return await self.transport.send(call)
            except KubeError as error:
                if not _worth_repeating(error, repeatable=repeatable):
                    raise
                asked = error.retry_after if isinstance(error, ApiError) else None
                pause = self.backoff.pause(failures, asked)
                if self.transport.clock() + pause + call.timeout > call.valid_until:
                    raise
            await asyncio.sleep(pause)
        return await self.transport.send(call)


class _Known(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Known] | None = None


def _worth_repeating(error: KubeError, *, repeatable: bool) -> bool:
    if isinstance(error, UnsentError):
        return True
    if isinstance(error, ApiError):
        return error.is_throttled or (repeatable and error.is_server_fault and error.code != 501)
    return repeatable


def _page(body: bytes, kind: type[T]) -> Page[T]:
    try:
        listed = _LIST.decode(body)
    except msgspec.MsgspecError as error:
        raise LostError(f"a list that is no list: {error}") from error
    items: list[T] = []
    broken: dict[tuple[str, str], str] = {}
    for raw in listed.items or ():
        try:
            items.append(from_json(raw, kind))
        except ObjectError as error:
            metadata = from_json(raw, _Meta).metadata
            broken[metadata.namespace, metadata.name] = str(error)
    return Page(items, listed.metadata.resource_version, listed.metadata.continue_ or "", broken)


def _json(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
