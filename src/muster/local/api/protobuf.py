"""The few kinds that kubectl's typed commands send as protobuf and that are plain enough to read by hand.

`kubectl create namespace`, `serviceaccount`, `configmap` and `secret` of newer versions send nothing else. Field
numbers are those of Kubernetes' API; everything else stays JSON and YAML, and is told so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name in JSON, and how its bytes read."""

    name: str
    form: str = "text"  # text, texts (a map of texts), blobs (a map of bytes), flag, message


_META = {
    1: Field("name"),
    2: Field("generateName"),
    3: Field("namespace"),
    11: Field("labels", "texts"),
    12: Field("annotations", "texts"),
}
_METADATA = Field("metadata", "message")
_KINDS: dict[tuple[str, str], dict[int, Field]] = {
    ("v1", "Namespace"): {1: _METADATA},
    ("v1", "ServiceAccount"): {1: _METADATA},
    ("v1", "ConfigMap"): {
        1: _METADATA,
        2: Field("data", "texts"),
        3: Field("binaryData", "blobs"),
        4: Field("immutable", "flag"),
    },
    ("v1", "Secret"): {
        1: _METADATA,
        2: Field("data", "blobs"),
        3: Field("type"),
        4: Field("stringData", "texts"),
        5: Field("immutable", "flag"),
    },
}


def decode(body: bytes) -> dict[str, Any] | None:
    """The object, or None for a kind that is not read. Raises ValueError for bytes that are no message."""
    envelope = dict(_fields(body[len(MAGIC) :]))
    described = {number: _text(value) for number, value in _fields(_blob(envelope.get(1, b"")))}
    version, kind = described.get(1, ""), described.get(2, "")
    known = _KINDS.get((version, kind))
    if known is None:
        return None
    return {"apiVersion": version, "kind": kind, **_message(_blob(envelope.get(2, b"")), known)}


def _message(data: bytes, known: dict[int, Field]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.form in ("texts", "blobs"):
            pair = dict(_fields(_blob(value)))
            raw = pair.get(2, b"")
            one = _text(raw) if field.form == "texts" else base64.b64encode(_blob(raw)).decode()
            found.setdefault(field.name, {})[_text(pair.get(1, b""))] = one
        elif field.form == "message":
            found[field.name] = _message(_blob(value), _META)
        elif field.form == "flag":
            found[field.name] = bool(value)
        elif text := _text(value):
            found[field.name] = text
    return found


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message, one after the other."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} is not known")
        if at + size > len(data):
            raise ValueError("the message is cut short")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("the message is cut short")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _blob(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes should")  # noqa: TRY004 - the message is wrong, not the caller
    return value


def _text(value: int | bytes) -> str:
    return _blob(value).decode()
