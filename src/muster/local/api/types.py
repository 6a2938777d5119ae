"""The fields of the built-in kinds: unknown ones are told and dropped, wrong types refused.

`types.json` lists, type by type, each field's type in a small notation: `str`, `int`, a type's name; `[T` a
list, `{T` a map; a trailing `!` says required. `#key` after a list names the keys its items are merged by
(`#` alone: a set of values), `%` marks a map that is replaced whole. Merging, OpenAPI and `kubectl explain`
read it too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import orjson

from muster.local.api.quantities import canonical

Value = Any
Check = Callable[[Value, list[str]], Value]

# Server-side apply owns these whole; patches merge them field by field.
ATOMIC_TYPES = frozenset(
    {
        "core.v1.ConfigMapKeySelector",
        "core.v1.FileKeySelector",
        "core.v1.LocalObjectReference",
        "core.v1.NodeSelector",
        "core.v1.NodeSelectorTerm",
        "core.v1.ObjectFieldSelector",
        "core.v1.ObjectReference",
        "core.v1.ResourceFieldSelector",
        "core.v1.ScopeSelector",
        "core.v1.SecretKeySelector",
        "core.v1.SecretReference",
        "core.v1.TopologySelectorTerm",
        "core.v1.TypedLocalObjectReference",
        "meta.v1.LabelSelector",
        "meta.v1.OwnerReference",
    }
)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type."""

    name: str
    base: str  # "str", "int", ..., or the name of a type
    shape: str = ""  # "" one value, "[" list, "{" map, "{[" map of lists
    keys: tuple[str, ...] | None = None  # what items of a list are merged by; () for a set of values
    atomic: bool = False
    required: bool = False

    @property
    def primitive(self) -> bool:
        return "." not in self.base


@dataclass(slots=True)
class TypeMismatchError(Exception):
    """A value of the wrong JSON type; the path grows outwards as the error rises."""

    got: str
    wanted: str
    path: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = ".".join(reversed(self.path))
        return f"json: cannot unmarshal {self.got} into Go struct field {where} of type {self.wanted}"


class MalformedError(Exception):
    """A value of the right JSON type whose text does not parse: a quantity, a time, base64."""


@cache
def _notation() -> dict[str, dict[str, str]]:
    text = (files("muster.local.api") / "types.json").read_bytes()
    table: dict[str, dict[str, str]] = orjson.loads(text)
    return table


@cache
def fields(type_name: str) -> dict[str, Field]:
    """The fields of a type, by name."""
    return {name: _field(name, text) for name, text in _notation()[type_name].items()}


def exists(type_name: str) -> bool:
    return type_name in _notation()


def _field(name: str, text: str) -> Field:
    required = text.endswith("!")
    text = text.rstrip("!")
    atomic = text.endswith("%")
    text, hash_, keys = text.rstrip("%").partition("#")
    base = text.lstrip("[{")
    merge = (tuple(keys.split(",")) if keys else ()) if hash_ else None
    atomic = atomic or base in ATOMIC_TYPES
    return Field(name, base, text[: len(text) - len(base)], merge, atomic, required)


def conform(obj: dict[str, Any], type_name: str) -> list[str]:
    """Drop unknown fields and nulls, in place, and return the paths of the unknown ones.

    Raises TypeMismatchError or MalformedError.
    """
    unknown: list[str] = []
    _checker(type_name)(obj, unknown)
    return unknown


@cache
def _checker(type_name: str) -> Check:
    checks: dict[str, Check | type] = {}
    zeros: list[tuple[str, Any]] = []
    short = type_name.rpartition(".")[2]

    def check(value: Value, unknown: list[str]) -> Value:
        if type(value) is not dict:
            raise TypeMismatchError(_json_type(value), type_name.partition(".")[0] + "." + short)
        if not checks and _notation()[type_name]:
            checks.update({name: _field_check(f) for name, f in fields(type_name).items()})
            zeros.extend(_zeros(type_name))
        dropped: list[str] = []
        for name, inner in value.items():
            expected = checks.get(name)
            if expected is None:
                unknown.append(name)
                dropped.append(name)
            elif inner is None:
                dropped.append(name)
            elif expected is str or expected is bool:
                if type(inner) is not expected:
                    raise TypeMismatchError(_json_type(inner), _GO_NAMES[expected], [f"{short}.{name}"])
            else:
                _descend(value, name, expected, unknown)
        for name in dropped:
            del value[name]
        for name, zero in zeros:
            if name not in value:
                value[name] = zero() if zero is list else zero
        return value

    return check


def _zeros(type_name: str) -> list[tuple[str, Any]]:
    """What a typed server writes for required fields that are missing: the zero of their type."""
    plain: dict[str, Any] = {"str": "", "int": 0, "bool": False}
    found: list[tuple[str, Any]] = []
    for name, field_ in fields(type_name).items():
        if field_.required and field_.shape == "[":
            found.append((name, list))
        elif field_.required and field_.shape == "" and field_.base in plain:
            found.append((name, plain[field_.base]))
    return found


def _descend(value: dict[str, Any], name: str, check: Check, unknown: list[str]) -> None:
    before = len(unknown)
    try:
        inner = value[name]
        changed = check(inner, unknown)
    except TypeMismatchError as error:
        error.path.append(name)
        raise
    if changed is not inner:
        value[name] = changed
    for i in range(before, len(unknown)):
        rest = unknown[i]
        unknown[i] = f"{name}{rest}" if rest.startswith("[") else f"{name}.{rest}"


def _field_check(f: Field) -> Check | type:
    if f.shape == "":
        return {"str": str, "bool": bool}.get(f.base) or _base_check(f.base)
    inner = _base_check(f.base)
    if f.shape.endswith("["):
        inner = _list_check(inner)
    return _map_check(inner) if f.shape.startswith("{") else inner


def _base_check(base: str) -> Check:
    return _PRIMITIVES.get(base) or _checker(base)


def _list_check(inner: Check) -> Check:
    def check(value: Value, unknown: list[str]) -> Value:
        if type(value) is not list:
            raise TypeMismatchError(_json_type(value), "[]")
        for i, item in enumerate(value):
            before = len(unknown)
            changed = inner(item, unknown)
            if changed is not item:
                value[i] = changed
            for j in range(before, len(unknown)):
                unknown[j] = f"[{i}].{unknown[j]}"
        return value

    return check


def _map_check(inner: Check) -> Check:
    def check(value: Value, unknown: list[str]) -> Value:
        if type(value) is not dict:
            raise TypeMismatchError(_json_type(value), "map[string]")
        for key, item in value.items():
            if inner is _string and type(item) is str:
                continue
            before = len(unknown)
            changed = inner("" if item is None else item, unknown)
            if changed is not item:
                value[key] = changed
            for j in range(before, len(unknown)):
                unknown[j] = f"{key}.{unknown[j]}"
        return value

    return check


def _string(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not str:
        raise TypeMismatchError(_json_type(value), "string")
    return value


def _bool(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not bool:
        raise TypeMismatchError(_json_type(value), "bool")
    return value


def _int(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        shown = f"number {value}" if isinstance(value, (int, float)) else _json_type(value)
        raise TypeMismatchError(shown if type(value) is not bool else "bool", "int64")
    return value


def _float(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not int and type(value) is not float:
        raise TypeMismatchError(_json_type(value), "float64")
    return value


def _int_or_string(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not int and type(value) is not str:
        raise TypeMismatchError(_json_type(value), "intstr.IntOrString")
    return value


def _quantity(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not str:
        if type(value) not in (int, float):
            raise TypeMismatchError(_json_type(value), "resource.Quantity")
        value = repr(value)
    try:
        return canonical(value)
    except ValueError as error:
        raise MalformedError(str(error)) from None


@lru_cache(maxsize=4096)
def _is_time(value: str) -> bool:
    return _RFC3339.fullmatch(value) is not None


def _time(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not str:
        raise TypeMismatchError(_json_type(value), "Time")
    if not _is_time(value):
        raise MalformedError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return value


def _bytes(value: Value, _unknown: list[str]) -> Value:
    if type(value) is not str:
        raise TypeMismatchError(_json_type(value), "[]uint8")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedError("illegal base64 data at input byte 0") from None
    return value


def _anything(value: Value, _unknown: list[str]) -> Value:
    return value


_PRIMITIVES: dict[str, Check] = {
    "str": _string,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "IntOrString": _int_or_string,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _time,
    "bytes": _bytes,
    "any": _anything,
}
_GO_NAMES: dict[object, str] = {str: "string", bool: "bool"}


def _json_type(value: Value) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "bool"), (str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "number"
