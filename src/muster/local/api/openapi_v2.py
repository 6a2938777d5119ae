"""OpenAPI v2 as kubectl reads it: a protobuf message, encoded by hand, since only a corner of it is needed.

kubectl before 1.27 finds here which kinds can be dry-run, validates manifests and explains fields. The
numbers are the field numbers of the gnostic OpenAPI v2 messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from muster.local.api import schemas
from muster.local.api.openapi import base_path
from muster.local.api.resources import Catalogue, Resource

Schema = dict[str, Any]

CONTENT_TYPE = "application/octet-stream"  # the name clients ask by is not one they can parse
PREFIX = "#/definitions/"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(kinds: Catalogue, custom: dict[tuple[str, str], Schema]) -> bytes:
    """The whole API as one message."""
    served = list(kinds.by_path.values())
    definitions = schemas.of_kinds(served, PREFIX, custom)
    info = _text(1, "Kubernetes") + _text(2, "v1.37.0")
    storable = [r for r in served if "list" in r.verbs]
    paths = b"".join(_bytes(2, _named(base_path(r) + "/{name}", _path(r))) for r in storable)
    named = b"".join(_bytes(1, _named(name, _schema(schema))) for name, schema in definitions.items())
    return _text(1, "2.0") + _bytes(2, info) + _bytes(8, paths) + _bytes(9, named)


def _path(resource: Resource) -> bytes:
    kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    operation = b"".join(_bytes(8, _query_parameter(name)) for name in _PARAMETERS)
    operation += _bytes(13, _extension("x-kubernetes-action", "patch"))
    operation += _bytes(13, _extension("x-kubernetes-group-version-kind", kind))
    return _bytes(8, operation)


def _query_parameter(name: str) -> bytes:
    query = _text(2, "query") + _text(4, name) + _text(6, "string")
    return _bytes(1, _bytes(2, _bytes(3, query)))


def _schema(schema: Schema) -> bytes:
    parts = [
        _text(1, schema.get("$ref", "")),
        _text(2, schema.get("format", "")),
        _text(4, schema.get("description", "")),
    ]
    parts += [_text(19, name) for name in schema.get("required") or ()]
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        parts.append(_bytes(21, _bytes(1, _schema(extra))))
    elif isinstance(extra, bool):
        parts.append(_bytes(21, _boolean(2, extra)))
    if isinstance(schema.get("type"), str):
        parts.append(_bytes(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(_bytes(23, _bytes(1, _schema(schema["items"]))))
    if properties := schema.get("properties"):
        named = b"".join(_bytes(1, _named(n, _schema(s))) for n, s in properties.items())
        parts.append(_bytes(25, named))
    parts += [_bytes(31, _extension(n, v)) for n, v in schema.items() if n.startswith("x-")]
    return b"".join(parts)


def _extension(name: str, value: Any) -> bytes:
    return _named(name, _text(2, orjson.dumps(value).decode()))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _bytes(2, value)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode()) if value else b""


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _boolean(number: int, value: bool) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _varint(value: int) -> bytes:
    return bytes(_septets(value))


def _septets(value: int) -> Iterable[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
