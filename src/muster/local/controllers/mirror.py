"""What the controllers see: every object they watch, found by name, by owner and by node.

It is fed by one watch, and by what the controllers' own writes answered, so that a controller never
forgets a pod it has just made. An answer and the watch may come in either order; the newer version wins,
and what was deleted stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.local.api.access import Object
from muster.local.controllers import fields as f

Key = tuple[str, str]


@dataclass(slots=True)
class Mirror:
    """Objects by resource, namespace and name, with the two indexes controllers need."""

    _objects: dict[str, dict[str, dict[str, Object]]] = field(default_factory=dict)
    _owned: dict[str, dict[str, dict[Key, Object]]] = field(default_factory=dict)
    _on_node: dict[str, dict[Key, Object]] = field(default_factory=dict)
    _by_uid: dict[str, tuple[str, Object]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def every(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        found = self._objects.get(resource, {})
        if namespace is not None:
            return iter(list(found.get(namespace, {}).values()))
        return (obj for inside in list(found.values()) for obj in list(inside.values()))

    def resources(self) -> Iterator[str]:
        return iter(list(self._objects))

    def owned(self, uid: str, resource: str) -> list[Object]:
        """Objects of a resource that name `uid` among their owners."""
        return list(self._owned.get(uid, {}).get(resource, {}).values())

    def count_owned(self, uid: str, resource: str) -> int:
        return len(self._owned.get(uid, {}).get(resource, ()))

    def dependents(self, uid: str) -> Iterator[tuple[str, Object]]:
        """Whatever names `uid` among its owners."""
        return iter([(r, obj) for r, found in self._owned.get(uid, {}).items() for obj in found.values()])

    def by_uid(self, uid: str) -> tuple[str, Object] | None:
        """The object of this uid and its resource, whatever its kind."""
        return self._by_uid.get(uid)

    def on_node(self, node: str) -> list[Object]:
        return list(self._on_node.get(node, {}).values())

    def seen(self, resource: str, obj: Object) -> bool:
        """Take in a version of an object; False when it is old news."""
        if f.uid(obj) in self._gone:
            return False
        old = self.get(resource, f.namespace(obj), f.name(obj))
        if old is not None and _version(old) >= _version(obj):
            return False
        if old is not None:
            self._drop(resource, old)
        self._objects.setdefault(resource, {}).setdefault(f.namespace(obj), {})[f.name(obj)] = obj
        self._by_uid[f.uid(obj)] = resource, obj
        key = (f.namespace(obj), f.name(obj))
        for uid in owners(obj):
            self._owned.setdefault(uid, {}).setdefault(resource, {})[key] = obj
        if resource == "pods" and (node := f.spec(obj).get("nodeName")):
            self._on_node.setdefault(node, {})[key] = obj
        return True

    def removed(self, resource: str, obj: Object) -> None:
        """The watch says an object is gone."""
        self._gone.discard(f.uid(obj))
        self._forget(resource, obj)

    def removing(self, resource: str, obj: Object) -> None:
        """Our own write removed an object; the watch will say so too, after older versions of it."""
        self._gone.add(f.uid(obj))
        self._forget(resource, obj)

    def _forget(self, resource: str, obj: Object) -> None:
        old = self.get(resource, f.namespace(obj), f.name(obj))
        if old is not None and f.uid(old) == f.uid(obj):
            del self._objects[resource][f.namespace(obj)][f.name(obj)]
            self._drop(resource, old)

    def _drop(self, resource: str, obj: Object) -> None:
        self._by_uid.pop(f.uid(obj), None)
        key = (f.namespace(obj), f.name(obj))
        for uid in owners(obj):
            by_resource = self._owned.get(uid, {})
            by_resource.get(resource, {}).pop(key, None)
            if not by_resource.get(resource):
                by_resource.pop(resource, None)
            if not by_resource:
                self._owned.pop(uid, None)
        if resource == "pods" and (node := f.spec(obj).get("nodeName")):
            self._on_node.get(node, {}).pop(key, None)


def owners(obj: Object) -> list[str]:
    return [ref["uid"] for ref in obj["metadata"].get("ownerReferences") or ()]


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)
