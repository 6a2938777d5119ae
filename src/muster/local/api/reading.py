"""Answers to get and list, in the form the client accepts: objects, tables, or metadata alone."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.local.api import columns, selectors
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError, bad_request, gone
from muster.local.api.requests import Target, parse_int
from muster.local.api.resources import EVENTS_V1, Resource
from muster.local.api.tables import Layout, partial, table
from muster.local.store import CompactedError, Key

Object = dict[str, Any]
Predicate = selectors.Predicate


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer: "" whole objects, "Table" or "Partial" (metadata alone)."""

    shape: str = ""
    include: str = "Metadata"


def form(accept: str, params: Mapping[str, str]) -> Form:
    """The first form of the Accept header that this server can give. Raises ApiError 406."""
    for media in accept.split(",") if accept else ["*/*"]:
        kind, *options = (part.strip() for part in media.split(";"))
        chosen = dict(o.partition("=")[::2] for o in options)
        if kind not in (
            "application/json",
            "*/*",
            "application/*",
            "text/html",
            "text/plain",
            "application/yaml",
        ):
            continue
        if chosen.get("as") == "Table" and chosen.get("g") == "meta.k8s.io":
            if chosen.get("v") == "v1":
                include = params.get("includeObject") or "Metadata"
                if include not in ("None", "Metadata", "Object"):
                    raise bad_request(f'unrecognized includeObject value: "{include}"')
                return Form("Table", include)
            continue
        if chosen.get("as", "").startswith("PartialObjectMetadata"):
            if chosen.get("v") == "v1":
                return Form("Partial")
            continue
        return Form()
    words = "only the following media types are accepted: application/json, application/yaml"
    raise ApiError(406, "NotAcceptable", words)


def layout_of(cluster: Cluster, resource: Resource) -> Layout:
    custom = cluster.custom.get((resource.id, resource.version))
    return custom.layout if custom else columns.of(resource.id)


def stamped(resource: Resource, obj: Object) -> Object:
    """The object as this version of its kind."""
    if obj.get("apiVersion") == resource.api_version:
        return obj
    if resource.group == EVENTS_V1:
        obj = as_events_v1(obj)
    return {**obj, "apiVersion": resource.api_version}


def as_events_v1(obj: Object) -> Object:
    """An event in the words of events.k8s.io."""
    new = {k: v for k, v in obj.items() if k not in ("involvedObject", "message", "source", "reportingComponent")}
    new["regarding"], new["note"] = obj.get("involvedObject"), obj.get("message", "")
    new["reportingController"] = obj.get("reportingComponent", "")
    return new


def one(cluster: Cluster, target: Target, shown: Form) -> bytes:
    """The body of a get."""
    record = cluster.record(target.resource, target.namespace, target.name)
    if not shown.shape and record.obj.get("apiVersion") == target.resource.api_version:
        return record.raw
    return single(cluster, target.resource, record.obj, shown)


def single(cluster: Cluster, resource: Resource, obj: Object, shown: Form) -> bytes:
    obj = stamped(resource, obj)
    if shown.shape == "Table":
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return orjson.dumps(table(layout_of(cluster, resource), [obj], meta, shown.include))
    return orjson.dumps(partial(obj) if shown.shape == "Partial" else obj)


def predicates(resource: Resource, params: Mapping[str, str]) -> list[Predicate]:
    """What the label and field selectors of a request demand."""
    found = (
        selectors.labels(params.get("labelSelector", "")),
        selectors.fields(params.get("fieldSelector", ""), resource),
    )
    return [p for p in found if p is not None]


def many(cluster: Cluster, target: Target, params: Mapping[str, str], shown: Form) -> bytes:
    """The body of a list."""
    page = _page(cluster, target, params)
    meta: Object = {"resourceVersion": str(page.revision)}
    if page.next:
        meta["continue"] = page.next
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    resource = target.resource
    if shown.shape == "Table":
        objects = (stamped(resource, obj) for obj, _ in page.items)
        return orjson.dumps(table(layout_of(cluster, resource), objects, meta, shown.include))
    kind, version = resource.kind + "List", resource.api_version
    if shown.shape == "Partial":
        kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        bodies = [orjson.dumps(partial(obj)) for obj, _ in page.items]
    else:
        bodies = [_body(resource, obj, raw) for obj, raw in page.items]
    head = orjson.dumps({"kind": kind, "apiVersion": version, "metadata": meta})
    return b"".join((head[:-1], b',"items":[', b",".join(bodies), b"]}"))


def _body(resource: Resource, obj: Object, raw: bytes | None) -> bytes:
    if raw is not None and obj.get("apiVersion") == resource.api_version:
        return raw
    return orjson.dumps(stamped(resource, obj))


@dataclass(slots=True)
class _Page:
    revision: int
    items: list[tuple[Object, bytes | None]]
    next: str = ""
    remaining: int | None = None


def _page(cluster: Cluster, target: Target, params: Mapping[str, str]) -> _Page:
    limit = parse_int(params.get("limit") or "0", "limit")
    tests = predicates(target.resource, params)
    revision, after = _start(cluster, params)
    found = _view(cluster, target, revision, after)
    page = _Page(revision, [])
    last: Key | None = None
    for key, obj, raw in found:
        if tests and not all(test(obj) for test in tests):
            continue
        if limit > 0 and len(page.items) == limit and last is not None:
            page.next = _token(revision, last)
            page.remaining = None if tests else 1 + sum(1 for _ in found)
            break
        page.items.append((obj, raw))
        last = key
    return page


def _start(cluster: Cluster, params: Mapping[str, str]) -> tuple[int, Key | None]:
    now = cluster.store.revision
    if token := params.get("continue"):
        return _read_token(token)
    match, text = params.get("resourceVersionMatch", ""), params.get("resourceVersion", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise bad_request(f'resourceVersionMatch: Unsupported value: "{match}"')
    if match and not text:
        raise bad_request("resourceVersionMatch: Forbidden: it needs a resourceVersion")
    wanted = parse_version(text)
    if wanted > now:
        words = f"Too large resource version: {wanted}, current: {now}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise ApiError(504, "Timeout", words, {"causes": [cause], "retryAfterSeconds": 1})
    return (wanted if match == "Exact" and wanted else now), None


def parse_version(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not text.isdecimal() or not text.isascii() or len(text) > 19:
        raise bad_request(f'resourceVersion: Invalid value: "{text}": invalid resource version')
    return int(text)


def _view(
    cluster: Cluster, target: Target, revision: int, after: Key | None
) -> Iterator[tuple[Key, Object, bytes | None]]:
    """Objects as they were at a version, in order."""
    resource, store = target.resource, cluster.store
    namespace = target.namespace if resource.namespaced else ""
    if revision == store.revision:
        return ((key, r.obj, r.raw) for key, r in cluster.scan(resource, namespace, after))
    try:
        past = store.changed_since(resource.id, revision)
    except CompactedError:
        raise gone(
            "The provided continue parameter is too old to display a consistent list result. You must start "
            "a new list without the continue parameter."
        ) from None
    view: dict[Key, tuple[Object, bytes | None]] = {
        key: (r.obj, r.raw) for key, r in cluster.scan(resource, namespace, after) if key not in past
    }
    for key, obj in past.items():
        if obj is not None and key > (after or ("", "")) and (not namespace or key[0] == namespace):
            view[key] = (obj, None)
    return ((key, *view[key]) for key in sorted(view))


def _token(revision: int, last: Key) -> str:
    body = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": list(last)})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        body = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = map(str, body["start"])
        revision = int(body["rv"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid") from None
    return revision, (namespace, name)


def rows(shown: Layout, objects: Iterable[Object], include: str, *, header: bool) -> Object:
    """A one-event Table of a watch."""
    found = list(objects)
    meta = {"resourceVersion": found[0]["metadata"].get("resourceVersion", "")} if found else {}
    return table(shown, found, meta, include, header=header)
