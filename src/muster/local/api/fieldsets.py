"""Sets of fields, as server-side apply counts them: which fields an object has, and how lists are told apart.

A field is a path of steps in the notation of `fieldsV1`: `f:NAME` a field, `k:{...}` the list item with those keys,
`v:...` a value of a set. An item of a list is a field itself, beside the fields within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from muster.local.api import types

Object = dict[str, Any]
Path = tuple[str, ...]
Fields = frozenset[Path]

CUSTOM = "custom"  # the type name of the root of a custom kind

_KEY_DEFAULTS = {"protocol": "TCP"}  # keys of list items that may be left out


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a place in an object: a built-in type or field, or a custom kind's schema."""

    type_name: str = ""
    field: types.Field | None = None
    schema: Object | None = None

    def child(self, name: str) -> Shape:
        """The shape of a field of an object, or of a value of a map."""
        if self.schema is not None:
            meta = name == "metadata" and self.type_name == CUSTOM
            return Shape("meta.v1.ObjectMeta") if meta else _schema_child(self.schema, name)
        if self.field is not None and self.field.shape.startswith("{"):
            inner = types.Field(name, self.field.base, self.field.shape[1:])
            return Shape(field=inner, type_name="" if inner.shape or inner.primitive else inner.base)
        if not self.type_name:
            return UNKNOWN
        found = types.fields(self.type_name).get(name)
        if found is None:
            return UNKNOWN
        return Shape(field=found, type_name="" if found.shape or found.primitive else found.base)

    def item(self) -> Shape:
        """The shape of the items of a list."""
        if self.schema is not None:
            return Shape(schema=self.schema.get("items") or {})
        if self.field is not None and not self.field.primitive:
            return Shape(type_name=self.field.base)
        return UNKNOWN

    @property
    def keys(self) -> tuple[str, ...] | None:
        """What items of a list are told apart by; () for a set, None for a list that is one value."""
        if self.schema is not None:
            kind = self.schema.get("x-kubernetes-list-type")
            named = tuple(self.schema.get("x-kubernetes-list-map-keys") or ())
            return named if kind == "map" else () if kind == "set" else None
        return self.field.keys if self.field is not None else None

    @property
    def atomic(self) -> bool:
        if self.schema is not None:
            return self.schema.get("x-kubernetes-map-type") == "atomic"
        return self.type_name in types.ATOMIC_TYPES or (self.field is not None and self.field.atomic)


UNKNOWN = Shape()


def _schema_child(schema: Object, name: str) -> Shape:
    inner = (schema.get("properties") or {}).get(name)
    if inner is None:
        extra = schema.get("additionalProperties")
        inner = extra if isinstance(extra, dict) else None
    return Shape(schema=inner) if inner is not None else UNKNOWN


def fields_of(value: Any, shape: Shape) -> Fields:
    """Every field of a value."""
    found: set[Path] = set()
    _collect(value, shape, (), found)
    return frozenset(found)


def _collect(value: Any, shape: Shape, path: Path, found: set[Path]) -> None:
    if isinstance(value, dict) and not shape.atomic and (value or not path):
        for name, inner in value.items():
            _collect(inner, shape.child(name), (*path, f"f:{name}"), found)
    elif isinstance(value, list) and shape.keys is not None:
        for item in value:
            step = step_of(item, shape.keys)
            found.add((*path, step))
            if isinstance(item, dict) and shape.keys:
                _collect(item, shape.item(), (*path, step), found)
    else:
        found.add(path)


def step_of(item: Any, keys: tuple[str, ...]) -> str:
    """The step to an item of a list."""
    if not keys or not isinstance(item, dict):
        return "v:" + orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
    named = {k: item.get(k, _KEY_DEFAULTS.get(k)) for k in keys if k in item or k in _KEY_DEFAULTS}
    return "k:" + orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode()


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """What is there with what is applied laid over it."""
    if isinstance(live, dict) and isinstance(applied, dict) and not shape.atomic:
        laid = {k: merged(live.get(k), v, shape.child(k)) for k, v in applied.items()}
        return {**live, **laid}
    if isinstance(live, list) and isinstance(applied, list) and shape.keys is not None:
        return _merged_list(live, applied, shape, shape.keys)
    return applied


def _merged_list(live: list[Any], applied: list[Any], shape: Shape, keys: tuple[str, ...]) -> list[Any]:
    wanted = {step_of(item, keys): item for item in applied}
    result = []
    for item in live:
        step = step_of(item, keys)
        result.append(merged(item, wanted.pop(step), shape.item()) if step in wanted else item)
    return result + list(wanted.values())


def value_at(value: Any, path: Path, shape: Shape) -> Any:
    """The value of a field; MISSING when the object does not have it."""
    for step in path:
        if step.startswith("f:") and isinstance(value, dict) and step[2:] in value:
            value, shape = value[step[2:]], shape.child(step[2:])
        elif isinstance(value, list):
            keys = shape.keys or ()
            value = next((item for item in value if step_of(item, keys) == step), MISSING)
            shape = shape.item()
        else:
            return MISSING
    return value


MISSING = object()


def without(value: Any, paths: Iterable[Path], shape: Shape) -> Any:
    """A value without some of its fields; what becomes empty by that goes too."""
    here: dict[str, list[Path]] = {}
    for path in paths:
        here.setdefault(path[0], []).append(path[1:])
    if isinstance(value, dict):
        return _without_of_object(value, here, shape)
    if isinstance(value, list):
        keys = shape.keys or ()
        kept = []
        for item in value:
            gone = here.get(step_of(item, keys))
            if gone is None:
                kept.append(item)
            elif () not in gone:
                kept.append(without(item, gone, shape.item()))
        return kept
    return value


def _without_of_object(value: Object, here: dict[str, list[Path]], shape: Shape) -> Object:
    result = dict(value)
    for step, gone in here.items():
        name = step[2:]
        if name not in result:
            continue
        if () in gone:
            del result[name]
            continue
        left = without(result[name], gone, shape.child(name))
        if left or left == 0:
            result[name] = left
        else:
            del result[name]
    return result


def packed(fields: Fields) -> Object:
    """Fields in the notation of `fieldsV1`."""
    root: Object = {}
    for path in sorted(fields):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        if path and path[-1].startswith("k:"):
            node["."] = {}
    return root


def unpacked(notation: Any, path: Path = ()) -> Fields:
    """The fields a `fieldsV1` stands for."""
    if not isinstance(notation, dict):
        return frozenset()
    found: set[Path] = set()
    for step, inner in notation.items():
        if step == ".":
            found.add(path)
        elif inner:
            found |= unpacked(inner, (*path, step))
        else:
            found.add((*path, step))
    return frozenset(found)


def shown(path: Path) -> str:
    """A field as conflicts name it: `.spec.containers[name="c"].image`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += "." + step[2:]
        elif step.startswith("k:"):
            keys = orjson.loads(step[2:])
            text += "[" + ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in keys.items()) + "]"
        else:
            text += f"[={step[2:]}]"
    return text
