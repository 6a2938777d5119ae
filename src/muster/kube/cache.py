"""What the API holds, as far as it has told us: objects by name, and the changes as they come.

Pure bookkeeping without I/O. A relist may skip versions of an object but never goes back, and it tells of
objects that went first, so that whoever counts room sees it freed before it is taken. An object that was
deleted and made anew under its name is told as both.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from muster.kube.watch import Broken, Event, Kind, Stored
from muster.objects.owners import ObjectMeta

Key = tuple[str, str]


T = TypeVar("T", bound=Stored)


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one object.

    Of a deleted one `new` is its last state, if that was told: it tells an object that ended, and so left
    the selection, from one that was deleted.
    """

    kind: Kind
    old: T | None
    new: T | None


Handler = Callable[[Change[T]], None]


@dataclass(slots=True)
class Cache(Generic[T]):
    """The objects of one kind, and who wants to hear of changes.

    Handlers are called in the order of the changes, from the loop, and must be quick. One that raises ends
    the feed: a scheduler that misses a change would plan on what is not so.
    """

    objects: dict[Key, T] = field(default_factory=dict)
    broken: dict[Key, str] = field(default_factory=dict)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: list[Handler[T]] = field(default_factory=list)

    def get(self, namespace: str, name: str) -> T | None:
        """The object of that name."""
        return self.objects.get((namespace, name))

    def replace(self, objects: Iterable[T], broken: dict[Key, str] | None = None) -> None:
        """Take a whole list, and tell what differs."""
        fresh = {key_of(each.metadata): each for each in objects}
        self.broken = broken or {}
        for key in [key for key in self.objects if key not in fresh]:
            self._remove(key, None)
        for each in fresh.values():
            self._put(each)
        self.synced.set()

    def apply(self, told: Event[T] | Broken) -> None:
        """Take one event of a watch."""
        if isinstance(told, Broken):
            self._break(told)
            return
        key = key_of(told.object.metadata)
        if self.broken:
            self.broken.pop(key, None)
        if told.kind is Kind.DELETED:
            self._remove(key, told.object)
        else:
            self._put(told.object)

    def _put(self, new: T) -> None:
        key = key_of(new.metadata)
        old = self.objects.get(key)
        if old is not None and old.metadata.uid != new.metadata.uid:
            self._remove(key, None)
            old = None
        if old is not None and old.metadata.resource_version == new.metadata.resource_version:
            return
        self.objects[key] = new
        self._tell(Change(Kind.MODIFIED if old is not None else Kind.ADDED, old, new))

    def _remove(self, key: Key, last: T | None) -> None:
        old = self.objects.pop(key, None)
        if old is not None:
            same = last is not None and last.metadata.uid == old.metadata.uid
            self._tell(Change(Kind.DELETED, old, last if same else None))

    def _break(self, told: Broken) -> None:
        key = key_of(told.metadata)
        self._remove(key, None)
        if told.kind is Kind.DELETED:
            self.broken.pop(key, None)
        else:
            self.broken[key] = told.message

    def _tell(self, change: Change[T]) -> None:
        for handler in self.handlers:
            handler(change)


def key_of(metadata: ObjectMeta) -> Key:
    """Namespace and name; objects of the cluster have no namespace."""
    return metadata.namespace, metadata.name
