"""Watches: the lines of one long answer, decoded; what each says, in order, and how it ended."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from muster.kube.errors import LostError, from_status
from muster.kube.transport import Transport
from muster.objects.decode import ObjectError, from_json
from muster.objects.owners import ObjectMeta

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
QUIET = 90.0  # seconds; a server that sends bookmarks does so every minute
LONGEST_LINE = 64 << 20


class Kind(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Stored(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, identity and version."""


T = TypeVar("T", bound=Stored)


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One object, as of its version."""

    kind: Kind
    object: T

    @property
    def version(self) -> str:
        """The version of the resource at which this happened."""
        return self.object.metadata.resource_version


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this version has been told; `initial` if that was all there is to start with."""

    version: str
    initial: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """An object that does not decode: which one, why, and as of which version."""

    kind: Kind
    metadata: ObjectMeta
    message: str

    @property
    def version(self) -> str:
        """The version of the resource at which this happened."""
        return self.metadata.resource_version


Told = Event[T] | Bookmark | Broken


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


_LINE = msgspec.json.Decoder(_Line)
_KINDS = {each.value: each for each in Kind}


@dataclass(frozen=True, slots=True)
class Asked:
    """What to watch: a path, what of it, and from which version on; without one, everything first."""

    path: str
    labels: str = ""
    fields: str = ""
    version: str = ""
    seconds: int = 300

    @property
    def url(self) -> str:
        """Path and query."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self.seconds),
            "labelSelector": self.labels,
            "fieldSelector": self.fields,
            "resourceVersion": self.version,
        }
        if not self.version:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return f"{self.path}?{urlencode({name: each for name, each in query.items() if each})}"


async def watch(transport: Transport, asked: Asked, quiet: float = QUIET) -> AsyncGenerator[list[bytes], None]:
    """Its lines, in batches as they arrive, for `told` to decode; an empty one first says that it is open."""
    async with transport.stream(asked.url, quiet) as chunks:
        yield []
        async for lines in _lines(chunks):
            yield [line for line in lines if line]


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Complete lines; the rest of one when the answer ends was cut, and the next watch tells it again."""
    rest: list[bytes] = []
    held = 0
    async for chunk in chunks:
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*rest, head]).split(b"\n")
            rest, held = [], 0
        rest.append(tail)
        held += len(tail)
        if held > LONGEST_LINE:
            raise LostError("a watch sent a line without end")


def told(line: bytes, kind: type[T]) -> Told[T]:
    """Decode one line of a watch."""
    try:
        parsed = _LINE.decode(line)
        if parsed.type == "ERROR":
            raise from_status(bytes(parsed.object))
        if parsed.type == "BOOKMARK":
            metadata = _metadata(parsed.object)
            return Bookmark(metadata.resource_version, metadata.annotations.get(INITIAL_EVENTS_END) == "true")
        change = _KINDS[parsed.type]
    except (msgspec.MsgspecError, KeyError) as error:
        raise LostError(f"a watch sent a line that is none: {error}") from error
    try:
        found = from_json(parsed.object, kind)
    except ObjectError as error:
        return Broken(change, _metadata(parsed.object), str(error))
    return Event(change, found)


def _metadata(raw: msgspec.Raw) -> ObjectMeta:
    try:
        return from_json(raw, _Meta).metadata
    except ObjectError as error:
        raise LostError(f"a watch told of an object without metadata: {error}") from error
