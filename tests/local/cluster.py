"""An API in memory with the few rules controllers and nodes depend on, so that their tests need no server."""

from __future__ import annotations

import asyncio
import copy
import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError, already_exists, conflict, not_found
from muster.local.clock import VirtualClock, stamp

Place = tuple[str, str, str]


@dataclass(slots=True)
class Memory:
    """Versions, uids, graceful deletion, finalizers and watches; no admission but the hook a test puts in."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    admit: Callable[[str, Object], None] = lambda _resource, _obj: None
    objects: dict[Place, Object] = field(default_factory=dict)
    writes: int = 0
    _watchers: list[tuple[frozenset[str], asyncio.Queue[tuple[str, str, Object]]]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def get(self, resource: str, namespace: str | None, name: str) -> Object:
        found = self.objects.get((resource, namespace or "", name))
        if found is None:
            raise not_found(resource.rpartition("/")[2], resource.rpartition("/")[0], name)
        return found

    def list(self, resource: str, namespace: str | None = None, labels: str = "", fields: str = "") -> list[Object]:
        wanted = dict(pair.split("=") for pair in labels.split(",") if pair)
        return [
            obj
            for (kind, place, _), obj in sorted(self.objects.items())
            if kind == resource
            and namespace in (None, place)
            and wanted.items() <= (obj["metadata"].get("labels") or {}).items()
        ]

    def create(self, resource: str, obj: Object, namespace: str | None = None) -> Object:
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        if namespace:
            metadata["namespace"] = namespace
        self.admit(resource, obj)
        number = next(self._numbers)
        if "name" not in metadata:
            metadata["name"] = f"{metadata['generateName']}{number:05x}"
        if self._place(resource, obj) in self.objects:
            raise already_exists(resource, "", metadata["name"])
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(self.clock.now()), "generation": 1}
        if resource == "pods":
            obj["spec"].setdefault("restartPolicy", "Always")
            obj.setdefault("status", {"phase": "Pending"})
        return self._store(resource, obj, "ADDED")

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        metadata = obj["metadata"]
        old = self.get(resource, metadata.get("namespace"), metadata["name"])
        if metadata.get("resourceVersion", old["metadata"]["resourceVersion"]) != old["metadata"]["resourceVersion"]:
            raise conflict(resource, "", metadata["name"])
        return self._replace(resource, old, copy.deepcopy(obj))

    def patch(self, resource: str, namespace: str | None, name: str, merge: Object, subresource: str = "") -> Object:
        old = self.get(resource, namespace, name)
        if (merge.get("metadata") or {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise conflict(resource, "", name)
        return self._replace(resource, old, merged(old, merge))

    def delete(
        self,
        resource: str,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> Object:
        old = self.get(resource, namespace, name)
        if uid and uid != old["metadata"]["uid"]:
            raise conflict(resource, "", name)
        new = copy.deepcopy(old)
        metadata = new["metadata"]
        extra = {"Foreground": ["foregroundDeletion"], "Orphan": ["orphan"]}.get(propagation, [])
        if extra:
            metadata["finalizers"] = [*metadata.get("finalizers", []), *extra]
        seconds = self._grace(resource, old, grace)
        if "deletionTimestamp" not in metadata or seconds < metadata.get("deletionGracePeriodSeconds", 0):
            metadata["deletionTimestamp"] = stamp(self.clock.now() + seconds)
            metadata["deletionGracePeriodSeconds"] = seconds
        elif seconds or metadata.get("finalizers"):
            return old
        return self._replace(resource, old, new)

    def _grace(self, resource: str, old: Object, grace: int | None) -> int:
        if resource != "pods" or not old["spec"].get("nodeName") or old["status"]["phase"] in ("Succeeded", "Failed"):
            return 0
        default: int = old["spec"].get("terminationGracePeriodSeconds", 30)
        return default if grace is None else grace

    async def watch(self, resources: Iterable[str]) -> AsyncIterator[tuple[str, str, Object]]:
        wanted, queue = frozenset(resources), asyncio.Queue[tuple[str, str, Object]]()
        for (resource, _, _), obj in sorted(self.objects.items()):
            if resource in wanted:
                queue.put_nowait((resource, "ADDED", obj))
        watcher = (wanted, queue)
        self._watchers.append(watcher)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(watcher)

    def evict(self, namespace: str, name: str, grace: int | None = None) -> None:
        self.delete("pods", namespace, name, grace=grace)

    @property
    def quiet(self) -> bool:
        """Whether every watcher has been told everything."""
        return all(queue.empty() for _, queue in self._watchers)

    def _place(self, resource: str, obj: Object) -> Place:
        return resource, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]

    def _replace(self, resource: str, old: Object, new: Object) -> Object:
        metadata = new["metadata"]
        waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and not waits:
            return self._remove(resource, new)
        if new.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"]["generation"] + 1
        if new == old:
            return old
        return self._store(resource, new, "MODIFIED")

    def _remove(self, resource: str, obj: Object) -> Object:
        del self.objects[self._place(resource, obj)]
        self._tell(resource, "DELETED", obj)
        return obj

    def _store(self, resource: str, obj: Object, change: str) -> Object:
        obj["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[self._place(resource, obj)] = obj
        self._tell(resource, change, obj)
        return obj

    def _tell(self, resource: str, change: str, obj: Object) -> None:
        self.writes += 1
        if change == "DELETED":
            obj["metadata"]["resourceVersion"] = str(next(self._numbers))
        for wanted, queue in self._watchers:
            if resource in wanted:
                queue.put_nowait((resource, change, obj))


def merged(old: Any, merge: Any) -> Any:
    if not isinstance(merge, dict):
        return copy.deepcopy(merge)
    new = copy.deepcopy(old) if isinstance(old, dict) else {}
    for key, value in merge.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


def forbid(message: str) -> ApiError:
    return ApiError(403, "Forbidden", message)


def as_access(memory: Memory) -> Access:
    """Where mypy checks that the fake is what it stands for."""
    return memory


async def settle(memory: Memory, *idle: Callable[[], bool]) -> None:
    """Let everybody who was told something react, until nobody does any more."""
    calm = 0
    while calm < 3:
        before = memory.writes
        await asyncio.sleep(0)
        still = memory.quiet and memory.writes == before and all(check() for check in idle)
        calm = calm + 1 if still else 0


async def advance(memory: Memory, seconds: float, *idle: Callable[[], bool]) -> None:
    """Let time pass, one due call at a time, with everybody reacting in between."""
    until = memory.clock.now() + seconds
    await settle(memory, *idle)
    while memory.clock.step(until):
        at = memory.clock.now()
        while memory.clock.next_at() == at:
            memory.clock.step(at)
        await settle(memory, *idle)
