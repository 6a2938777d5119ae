"""OpenAPI v3 documents, one per group and version: what newer clients validate against and explain from."""

from __future__ import annotations

import hashlib
from typing import Any

from muster.local.api import schemas
from muster.local.api.resources import Catalogue, Resource

Schema = dict[str, Any]

PREFIX = "#/components/schemas/"
_STRATEGIC = "application/strategic-merge-patch+json"  # clients merge custom kinds without it
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_QUERY_TYPES = {
    "allowWatchBookmarks": "boolean",
    "sendInitialEvents": "boolean",
    "watch": "boolean",
    "force": "boolean",
    "orphanDependents": "boolean",
    "limit": "integer",
    "timeoutSeconds": "integer",
    "gracePeriodSeconds": "integer",
}


def root(kinds: Catalogue) -> Schema:
    """The list of documents."""
    where = {path_of(group, version): (group, version) for group, version in _group_versions(kinds)}
    return {"paths": {path: {"serverRelativeURL": _url(kinds, path)} for path in where}}


def _group_versions(kinds: Catalogue) -> list[tuple[str, str]]:
    return [(g, v) for g in ("", *kinds.groups()) for v in kinds.versions(g)]


def path_of(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _url(kinds: Catalogue, path: str) -> str:
    """Clients cache a document by this address, so it changes when the kinds do."""
    mark = hashlib.sha256(f"{path} {kinds.changes}".encode()).hexdigest()[:16]
    return f"/openapi/v3/{path}?hash={mark}"


def document(kinds: Catalogue, group: str, version: str, custom: dict[tuple[str, str], Schema]) -> Schema:
    """The document of one group and version."""
    served = kinds.within(group, version)
    storable = [r for r in served if "list" in r.verbs]
    components = schemas.of_kinds(served, PREFIX, custom)
    components.update(schemas.closure(["meta.v1.DeleteOptions", "meta.v1.Status"], PREFIX))
    paths: Schema = {}
    for resource in storable:
        paths.update(_paths(resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"BearerToken": []}],
    }


def base_path(resource: Resource) -> str:
    root_ = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    home = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root_}{home}/{resource.plural}"


def _paths(resource: Resource) -> Schema:
    collection = base_path(resource)
    item = f"{collection}/{{name}}"
    paths: Schema = {
        collection: {
            "parameters": _path_parameters(resource, named=False),
            "get": _operation(resource, "list", _LIST),
            "post": _operation(resource, "post", _WRITE, body="application/json"),
            "delete": _operation(resource, "deletecollection", ("fieldSelector", "labelSelector", "dryRun")),
        },
        item: _item(resource),
    }
    if "status" in resource.subresources:
        paths[f"{item}/status"] = {k: v for k, v in _item(resource).items() if k != "delete"}
    return paths


def _item(resource: Resource) -> Schema:
    return {
        "parameters": _path_parameters(resource, named=True),
        "get": _operation(resource, "get", ()),
        "put": _operation(resource, "put", _WRITE, body="application/json"),
        "patch": _operation(resource, "patch", (*_WRITE, "force"), body=_PATCHES[1]),
        "delete": _operation(resource, "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
    }


def _path_parameters(resource: Resource, *, named: bool) -> list[Schema]:
    names = (["namespace"] if resource.namespaced else []) + (["name"] if named else [])
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]


def _operation(resource: Resource, action: str, query: tuple[str, ...], body: str = "") -> Schema:
    reference = {"$ref": PREFIX + schemas.of_resource(resource)}
    operation: Schema = {
        "operationId": f"{action}{resource.kind}{resource.version}{resource.group.replace('.', '')}",
        "parameters": [{"name": n, "in": "query", "schema": {"type": _QUERY_TYPES.get(n, "string")}} for n in query],
        "responses": _responses(reference if action not in ("list", "deletecollection", "delete") else None),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "kind": resource.kind,
            "version": resource.version,
        },
    }
    if body:
        patches = [p for p in _PATCHES if not (resource.custom and p == _STRATEGIC)] if action == "patch" else []
        content = {media: {"schema": {"type": "object"}} for media in patches}
        operation["requestBody"] = {"content": content or {body: {"schema": reference}}, "required": True}
    return operation


def _responses(schema: Schema | None) -> Schema:
    ok: Schema = {"description": "OK"}
    if schema is not None:
        ok["content"] = {"application/json": {"schema": schema}}
    return {"200": ok, "201": ok, "default": {"description": "A Status that says why not."}}
