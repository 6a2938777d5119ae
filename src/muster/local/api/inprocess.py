"""Access for the cluster's own controllers and nodes: the same rules as over HTTP, without the socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from muster.local.api import verbs
from muster.local.api.cluster import Cluster, private
from muster.local.api.decoding import conformed
from muster.local.api.errors import no_such_path
from muster.local.api.options import DeleteOptions, Options
from muster.local.api.patches import merge as merge_patch
from muster.local.api.resources import Resource
from muster.local.api.selectors import fields as field_selector
from muster.local.api.selectors import labels as label_selector

Object = dict[str, Any]


class InProcess:
    """An Access to a cluster in this process."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def get(self, resource: str, namespace: str | None, name: str) -> Object:
        return self._cluster.record(self._resource(resource), namespace or "", name).obj

    def list(self, resource: str, namespace: str | None = None, labels: str = "", fields: str = "") -> list[Object]:
        kind = self._resource(resource)
        tests = [t for t in (label_selector(labels), field_selector(fields, kind)) if t is not None]
        found = (record.obj for _, record in self._cluster.scan(kind, namespace or ""))
        return [obj for obj in found if all(test(obj) for test in tests)]

    def create(self, resource: str, obj: Object, namespace: str | None = None) -> Object:
        kind = self._resource(resource)
        fresh = conformed(self._cluster, kind, private(obj), Options())
        home = namespace or fresh["metadata"].get("namespace") or ""
        if kind.namespaced and not home:
            home = "default"
        return self._cluster.create(kind, fresh, home, Options())

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        kind = self._resource(resource)
        fresh = conformed(self._cluster, kind, private(obj), Options())
        meta = fresh["metadata"]
        home, name = meta.get("namespace", ""), meta.get("name", "")
        return self._cluster.replace(kind, home, name, fresh, Options(), subresource)

    def patch(self, resource: str, namespace: str | None, name: str, merge: Object, subresource: str = "") -> Object:
        kind = self._resource(resource)
        record = self._cluster.record(kind, namespace or "", name)
        new = conformed(self._cluster, kind, merge_patch(record.obj, private(merge)), Options())
        wanted = (merge.get("metadata") or {}).get("resourceVersion")
        new["metadata"] = {**new["metadata"], "resourceVersion": wanted or ""}
        return self._cluster.replace(kind, namespace or "", name, new, Options(), subresource)

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
        options = DeleteOptions(grace, propagation, uid)
        obj, _ = self._cluster.delete(self._resource(resource), namespace or "", name, options)
        return obj

    def evict(self, namespace: str, name: str, grace: int | None = None) -> None:
        verbs.evict(self._cluster, namespace, name, DeleteOptions(grace))

    async def watch(self, resources: Iterable[str]) -> AsyncIterator[tuple[str, str, Object]]:
        names = [self._resource(r).id for r in resources]
        since = self._cluster.store.revision
        watcher = self._cluster.watch(names, since)
        try:
            present = [(name, r.obj) for name in names for _, r in self._cluster.store.scan(name)]
            for name, obj in present:
                yield name, "ADDED", obj
            while True:
                for change in watcher.take():
                    yield change.resource, change.kind, change.obj
                await watcher.wait()
        finally:
            watcher.close()

    def _resource(self, resource: str) -> Resource:
        found = self._cluster.catalogue.by_id.get(resource)
        if found is None:
            raise no_such_path()
        return found
