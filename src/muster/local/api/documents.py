"""The documents clients read before anything else: versions, discovery and OpenAPI, built once per change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from muster.local.api import discovery, openapi, openapi_v2
from muster.local.api.cluster import Cluster
from muster.local.api.errors import no_such_path

Object = dict[str, Any]
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Document:
    """A finished document."""

    body: bytes
    content_type: str
    etag: str


@dataclass(slots=True)
class Documents:
    """All documents of a cluster; forgotten when its kinds change."""

    cluster: Cluster
    _built: dict[tuple[str, str], Document] = field(default_factory=dict)
    _changes: int = -1

    def get(self, path: str, accept: str, address: str) -> Document:
        """The document at a path. Raises ApiError 404."""
        path = path.rstrip("/") or "/"
        if self._changes != self.cluster.catalogue.changes:
            self._built.clear()
            self._changes = self.cluster.catalogue.changes
        form = _form(path, accept)
        found = self._built.get((path, form))
        if found is None:
            body, content_type = self._build(path, form, address)
            found = Document(body, content_type, hashlib.sha256(body).hexdigest()[:32])
            self._built[path, form] = found
        return found

    def _build(self, path: str, form: str, address: str) -> tuple[bytes, str]:
        kinds = self.cluster.catalogue
        if form == "aggregated":
            body = orjson.dumps(discovery.aggregated(kinds, core=path == "/api"))
            return body, discovery.AGGREGATED
        if path == "/openapi/v2":
            return openapi_v2.document(kinds, self._custom()), openapi_v2.CONTENT_TYPE
        return orjson.dumps(self._json(path.strip("/").split("/"), address)), _JSON

    def _json(self, parts: list[str], address: str) -> Object:
        kinds = self.cluster.catalogue
        match parts:
            case ["version"]:
                return discovery.version()
            case ["api"]:
                return discovery.core_versions(address)
            case ["api", "v1"]:
                return discovery.resource_list(kinds, "", "v1")
            case ["apis"]:
                return discovery.group_list(kinds)
            case ["apis", group] if group in kinds.groups():
                return discovery.group(kinds, group)
            case ["apis", group, version] if version in kinds.versions(group):
                return discovery.resource_list(kinds, group, version)
            case ["openapi", "v3"]:
                return openapi.root(kinds)
            case ["openapi", "v3", "api", "v1"]:
                return openapi.document(kinds, "", "v1", self._custom())
            case ["openapi", "v3", "apis", group, version] if version in kinds.versions(group):
                return openapi.document(kinds, group, version, self._custom())
            case [""]:
                return {"paths": ["/api", "/api/v1", "/apis", "/healthz", "/version"]}
        raise no_such_path()

    def _custom(self) -> dict[tuple[str, str], Object]:
        return {key: rules.schema for key, rules in self.cluster.custom.items()}


def _form(path: str, accept: str) -> str:
    if path in ("/api", "/apis") and "as=APIGroupDiscoveryList" in accept and "v=v2" in accept:
        wanted = accept.partition("as=APIGroupDiscoveryList")[0]
        return "aggregated" if "v2beta1" not in wanted.rpartition(",")[2] else ""
    return ""
