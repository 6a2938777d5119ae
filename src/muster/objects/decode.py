"""Kubernetes JSON into typed structs: only the fields the scheduler reads, unknown ones skipped.

Decoding straight into structs is several times faster than building dictionaries, and most of the time of a
cold start is decoding. JSON from hand-written manifests and some clients holds `null` where a field is
absent, as Kubernetes allows; that slower shape is decoded again with the nulls dropped.
"""

import functools
from collections.abc import Hashable
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


class ObjectError(ValueError):
    """An object that does not have the shape Kubernetes gives it; the message is one line and names it."""


class Decoded(msgspec.Struct, rename="camel", kw_only=True, frozen=True, gc=False):
    """Base of every decoded object: camelCase on the wire, immutable here."""


def from_json(data: bytes | str, kind: type[T]) -> T:
    """Decode one JSON document, such as a line of a watch."""
    try:
        return cast("T", _decoder(cast("Hashable", kind)).decode(data))
    except msgspec.ValidationError:
        return from_object(msgspec.json.decode(data), kind)
    except msgspec.DecodeError as error:
        raise ObjectError(f"{kind.__name__}: not JSON: {error}") from error


def from_object(tree: Any, kind: type[T]) -> T:
    """Convert an already decoded tree of dictionaries and lists."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError:
        pass  # most likely a null; the second try tells
    try:
        return msgspec.convert(_without_nulls(tree), kind)
    except msgspec.ValidationError as error:
        raise ObjectError(f"{_label(tree, kind)}: {error}") from error


@functools.cache
def _decoder(kind: Hashable) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


def _without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_nulls(item) for key, item in tree.items() if item is not None}
    if isinstance(tree, list):
        return [_without_nulls(item) for item in tree]
    return tree


def _label(tree: Any, kind: type[Any]) -> str:
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict):
        return kind.__name__
    return f"{kind.__name__} {metadata.get('namespace') or ''}/{metadata.get('name') or '?'}".replace(" /", " ")
