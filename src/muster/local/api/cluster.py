"""The rules of reading and writing objects, whoever asks: HTTP requests and the cluster's own controllers.

A write goes through the same stations as on a real server: default, admit, validate, version, store. It runs
to its end without yielding, so what admission saw is what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import orjson

from muster.local.api import defaults, fieldsets, limits, ownership, priority, quota, types
from muster.local.api.builtin import catalogue
from muster.local.api.errors import (
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    gone,
    invalid,
    invalid_value,
    not_found,
)
from muster.local.api.fieldsets import Shape
from muster.local.api.options import DeleteOptions, Options
from muster.local.api.preparing import counts_generation, fill_in, generated, identify, later
from muster.local.api.resources import Catalogue, Resource
from muster.local.api.rules import table as rules
from muster.local.api.rules.meta import metadata
from muster.local.api.tables import Layout
from muster.local.store import CompactedError, Key, Record, Store, Watcher

Object = dict[str, Any]
Hook = Callable[[Object | None, Object | None], None]

# Set once by the server, whatever an update says.
_FIXED_META = (
    "uid",
    "name",
    "namespace",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
# Deleting these without saying how leaves their dependents alone, for compatibility.
_ORPHANS_BY_DEFAULT = frozenset({"batch/jobs", "replicationcontrollers"})
_STATUS_MAY_LABEL = frozenset({"pods", "nodes"})


class CustomRules(Protocol):
    """What a custom kind brings along: its schema, columns, defaults and validation."""

    @property
    def schema(self) -> Object: ...

    @property
    def layout(self) -> Layout: ...

    def prune(self, obj: Object) -> list[str]:
        """Drop fields the schema does not know; their paths."""
        ...

    def default(self, obj: Object) -> None: ...

    def faults(self, obj: Object, _old: Object | None) -> list[FieldError]: ...


class Cluster:
    """Objects by resource; every write checked."""

    def __init__(self, store: Store, *, native_gang: bool = False) -> None:
        self.store = store
        self.catalogue: Catalogue = catalogue(native_gang)
        self.custom: dict[tuple[str, str], CustomRules] = {}
        self.hooks: dict[str, Hook] = {}
        self.before_create: dict[str, Callable[[Object], None]] = {}
        self.checks: dict[str, rules.Rule] = {}

    def record(self, resource: Resource, namespace: str, name: str) -> Record:
        record = self.store.get(resource.id, namespace if resource.namespaced else "", name)
        if record is None:
            raise not_found(resource.plural, resource.group, name)
        return record

    def scan(self, resource: Resource, namespace: str, after: Key | None = None) -> Iterator[tuple[Key, Record]]:
        return iter(self.store.scan(resource.id, namespace if resource.namespaced else "", after))

    def watch(self, resources: list[str], since: int) -> Watcher:
        try:
            return self.store.watch(resources, since)
        except CompactedError:
            floor = max(self.store.floor(r) for r in resources)
            raise gone(f"too old resource version: {since} ({floor})") from None

    def create(self, resource: Resource, obj: Object, namespace: str, options: Options) -> Object:
        """Store a new object, which from now on belongs to the store."""
        self._check_target(resource, obj, namespace)
        identify(resource, obj, namespace)
        self._default(resource, obj)
        ownership.begin(obj, self.shape(resource), options)
        fill_in(resource.id, obj)
        if prepare := self.before_create.get(resource.id):
            prepare(obj)
        self._admit(resource, obj, namespace)
        self._validate(resource, obj, None)
        charged = quota.admit(self.store, resource.id, obj, namespace)
        key = (namespace if resource.namespaced else "", obj["metadata"]["name"])
        if self.store.get(resource.id, *key) is not None:
            if "generateName" not in obj["metadata"]:
                raise already_exists(resource.plural, resource.group, key[1])
            obj["metadata"]["name"] = generated(obj["metadata"]["generateName"])
            key = (key[0], obj["metadata"]["name"])
        if options.dry_run:
            return obj
        for name, changed in charged:
            self.store.put("resourcequotas", (namespace, name), changed)
        return self._put(resource, key, obj, None)

    def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        new: Object,
        options: Options,
        subresource: str = "",
        *,
        tracked: bool = False,
    ) -> Object:
        """Write a new version of an object, on condition that it is at the version the caller saw, if any."""
        meta = new["metadata"]
        if meta.get("name", name) != name:
            words = f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            raise bad_request(words)
        record = self.record(resource, namespace, name)
        self._check_versions(resource, record, meta.get("resourceVersion", ""), meta.get("uid", ""))
        return self._write(resource, record, new, options, subresource, tracked)

    def shape(self, resource: Resource) -> Shape:
        """What is known of the fields of a kind."""
        if custom := self.custom.get((resource.id, resource.version)):
            return Shape(fieldsets.CUSTOM, schema=custom.schema)
        return Shape(resource.type)

    def _write(
        self, resource: Resource, record: Record, new: Object, options: Options, subresource: str, tracked: bool
    ) -> Object:
        """Store what an update makes of an object; the same object again when it changes nothing."""
        old = record.obj
        final = _merged(resource, old, new, subresource)
        if not subresource:
            self._default(resource, final)
            self._admit_update(resource, final)
        if final == old:
            return old
        if not tracked and "managedFields" in final["metadata"]:
            ownership.track(final, old, self.shape(resource), options, subresource)
        if subresource != "status":
            _count(resource, final, old)
        self._validate(resource, final, old)
        if options.dry_run:
            return final
        key = (old["metadata"].get("namespace", ""), old["metadata"]["name"])
        if _ready_to_go(resource, final):
            return self._remove(resource, key, final)
        return self._put(resource, key, final, record)

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """Delete, or mark as being deleted; the object, and whether it is gone already."""
        record = self.record(resource, namespace, name)
        self._check_versions(resource, record, options.version, options.uid, deleting=True)
        old = record.obj
        meta = {**old["metadata"], "finalizers": _finalizers(resource, old, options.propagation)}
        grace = _grace(resource, old, options.grace)
        first = "deletionTimestamp" not in meta
        key = (meta.get("namespace", ""), meta["name"])
        waits = bool(meta["finalizers"]) or (resource.id == "namespaces" and old["spec"].get("finalizers"))
        if not meta["finalizers"]:
            del meta["finalizers"]
        if grace == 0 and not waits:
            return (old, True) if options.dry_run else (self._remove(resource, key, old), True)
        if not first and not _shortens(meta, grace, resource):
            return old, False
        meta["deletionTimestamp"] = later(grace)
        meta["deletionGracePeriodSeconds"] = grace
        if first and "generation" in meta:
            meta["generation"] += 1
        final = {**old, "metadata": meta}
        if resource.id == "namespaces":
            final["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
        return (final if options.dry_run else self._put(resource, key, final, record)), False

    def put_unchecked(self, resource: Resource, key: Key, obj: Object, record: Record) -> Object:
        """Write a version made by the server itself (a binding, a charged budget)."""
        return self._put(resource, key, obj, record)

    def _put(self, resource: Resource, key: Key, obj: Object, record: Record | None) -> Object:
        self.store.put(resource.id, key, obj, record.revision if record else 0)
        if hook := self.hooks.get(resource.id):
            hook(obj, record.obj if record else None)
        return obj

    def _remove(self, resource: Resource, key: Key, last: Object) -> Object:
        obj = self.store.remove(resource.id, key, last).obj
        if hook := self.hooks.get(resource.id):
            hook(None, obj)
        return obj

    def _check_target(self, resource: Resource, obj: Object, namespace: str) -> None:
        given = obj["metadata"].get("namespace")
        if resource.namespaced and given and given != namespace:
            words = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(words)
        if obj["metadata"].get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if not resource.namespaced:
            return
        home = self.store.get("namespaces", "", namespace)
        if home is None:
            raise not_found("namespaces", "", namespace)
        if "deletionTimestamp" in home.obj["metadata"]:
            name = obj["metadata"].get("name", "")
            words = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource.plural, resource.group, name, words)
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            cause["message"] = f"namespace {namespace} is being terminated"
            error.details["causes"] = [cause]
            raise error

    def _check_versions(
        self, resource: Resource, record: Record, version: str, uid: str, *, deleting: bool = False
    ) -> None:
        meta = record.obj["metadata"]
        if uid and uid != meta["uid"]:
            words = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
            raise conflict(resource.plural, resource.group, meta["name"], words)
        if version and version != meta["resourceVersion"]:
            words = ""
            if deleting:
                words = f"Precondition failed: ResourceVersion in precondition: {version}, "
                words += f"ResourceVersion in object meta: {meta['resourceVersion']}"
            raise conflict(resource.plural, resource.group, meta["name"], words)

    def _default(self, resource: Resource, obj: Object) -> None:
        if custom := self.custom.get((resource.id, resource.version)):
            custom.default(obj)
        else:
            if "spec" in types.fields(resource.type):
                obj.setdefault("spec", {})
            defaults.apply(resource.id, obj)

    def _admit(self, resource: Resource, obj: Object, namespace: str) -> None:
        if resource.id == "pods":
            priority.admit_pod(self.store, obj)
            self._check_account(obj, namespace)
            limits.admit_pod(self.store, obj, namespace)
        elif resource.id == "persistentvolumeclaims":
            limits.admit_claim(self.store, obj, namespace)
        elif resource.id == "scheduling.k8s.io/priorityclasses":
            priority.admit_class(self.store, obj)
        elif resource.group == "scheduling.k8s.io" and resource.plural in ("podgroups", "compositepodgroups"):
            priority.admit_group(self.store, obj, resource.plural)

    def _admit_update(self, resource: Resource, obj: Object) -> None:
        if resource.id == "scheduling.k8s.io/priorityclasses":
            priority.admit_class(self.store, obj)

    def _check_account(self, pod: Object, namespace: str) -> None:
        account = pod["spec"]["serviceAccountName"]
        if self.store.get("serviceaccounts", namespace, account) is None:
            words = f"error looking up service account {namespace}/{account}: "
            words += f'serviceaccount "{account}" not found'
            raise forbidden("pods", "", pod["metadata"].get("name", ""), words)

    def _validate(self, resource: Resource, obj: Object, old: Object | None) -> None:
        errors: list[FieldError] = []
        if old is None or obj["metadata"] is not old["metadata"]:
            errors += metadata(resource.id, obj["metadata"])
            errors += _new_finalizers(obj, old)
        if custom := self.custom.get((resource.id, resource.version)):
            errors += custom.faults(obj, old)
        else:
            errors += rules.check(resource.id, obj, old)
        if check := self.checks.get(resource.id):
            errors += check(obj, old)
        if errors:
            name = obj["metadata"].get("name") or obj["metadata"].get("generateName", "")
            raise invalid(resource.group, resource.kind, name, errors)


def private(obj: Object) -> Object:
    """A deep copy, for objects that come from elsewhere in the process."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def _merged(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    meta = {k: v for k, v in new["metadata"].items() if k not in _FIXED_META and v is not None}
    meta.update({k: old["metadata"][k] for k in _FIXED_META if k in old["metadata"]})
    if "managedFields" in old["metadata"]:
        meta.setdefault("managedFields", old["metadata"]["managedFields"])
    if subresource == "status":
        kept = meta if resource.id in _STATUS_MAY_LABEL else dict(old["metadata"])
        if "managedFields" in meta:
            kept["managedFields"] = meta["managedFields"]
        return {**old, "metadata": kept, "status": new.get("status") or {}}
    if subresource == "finalize":
        return {**old, "metadata": meta, "spec": new.get("spec") or {}}
    final = {**new, "metadata": meta, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    if "status" in resource.subresources:
        final.pop("status", None)
        if "status" in old:
            final["status"] = old["status"]
    return final


def _count(resource: Resource, new: Object, old: Object) -> None:
    """Bump metadata.generation when what the user asked for changed."""
    if not counts_generation(resource):
        return
    ignored = {"metadata", "status"} if "status" in resource.subresources else {"metadata"}
    if any(new.get(k) != old.get(k) for k in (new.keys() | old.keys()) - ignored):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _finalizers(resource: Resource, obj: Object, propagation: str) -> list[str]:
    """What a deletion must wait for: the object's own finalizers, and those its propagation asks for."""
    found = list(obj["metadata"].get("finalizers") or ())
    if propagation:
        found = [f for f in found if f not in ("orphan", "foregroundDeletion")]
    elif resource.id in _ORPHANS_BY_DEFAULT:
        propagation = "Orphan"
    added = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}.get(propagation)
    return [*found, added] if added and added not in found else found


def _grace(resource: Resource, obj: Object, asked: int | None) -> int:
    if resource.id != "pods":
        return 0
    spec, phase = obj["spec"], (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    grace = spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return max(int(grace), 0)


def _shortens(meta: Object, grace: int, resource: Resource) -> bool:
    return resource.id == "pods" and grace < meta.get("deletionGracePeriodSeconds", 0)


def _ready_to_go(resource: Resource, obj: Object) -> bool:
    """Whether an update took the last thing a deletion was waiting for."""
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource.id == "namespaces":
        return not obj["spec"].get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")


def _new_finalizers(obj: Object, old: Object | None) -> list[FieldError]:
    if old is None or "deletionTimestamp" not in old["metadata"]:
        return []
    had = set(old["metadata"].get("finalizers") or ())
    added = sorted(set(obj["metadata"].get("finalizers") or ()) - had)
    if not added:
        return []
    words = "no new finalizers can be added if the object is being deleted, "
    words += f"found new finalizers {added}"
    return [invalid_value("metadata.finalizers", obj["metadata"]["finalizers"], words)]
