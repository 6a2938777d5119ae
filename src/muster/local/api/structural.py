"""Structural schemas of custom kinds: dropping unknown fields, filling in defaults, and validating.

Validation proper is jsonschema-rs's; what is specific to Kubernetes (pruning, defaulting, `nullable`,
`x-kubernetes-int-or-string`, the words of the errors) is here.
"""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs

from muster.local.api.errors import FieldError, invalid_value, not_supported, required

Object = dict[str, Any]
Schema = dict[str, Any]

_OWN = frozenset({"apiVersion", "kind", "metadata"})
_KEPT = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_DEEP_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_DROPPED = frozenset({"description", "default", "example", "externalDocs", "title", "nullable"})
_FORMATS = frozenset({"date-time", "date", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"})


def prune(value: Any, schema: Schema, *, root: bool = False) -> list[str]:
    """Drop the fields a schema does not know, in place; their paths."""
    if isinstance(value, list):
        items = schema.get("items")
        found = []
        for i, item in enumerate(value):
            found += [f"[{i}]{_joined(p)}" for p in prune(item, items or {_KEPT: True})]
        return found
    if not isinstance(value, dict) or (schema.get(_KEPT) and not schema.get("properties")):
        return []
    return _prune_object(value, schema, _OWN if root or schema.get(_EMBEDDED) else frozenset())


def _prune_object(value: Object, schema: Schema, always: frozenset[str]) -> list[str]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    unknown: list[str] = []
    for name in list(value):
        if name in always:
            continue
        inner = properties.get(name, extra if isinstance(extra, dict) else None)
        if inner is not None:
            unknown += [name + _joined(p) for p in prune(value[name], inner)]
        elif extra is not True and not schema.get(_KEPT):
            unknown.append(name)
            del value[name]
    return unknown


def _joined(path: str) -> str:
    return path if path.startswith("[") else f".{path}"


def fill_in(value: Any, schema: Schema) -> None:
    """Fill in defaults, in place, from the outside in."""
    if isinstance(value, list):
        for item in value:
            fill_in(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in properties.items():
        if "default" in inner and (name not in value or _null_means_default(value[name], inner)):
            value[name] = copy.deepcopy(inner["default"])
        elif name in value and _null_means_absent(value[name], inner):
            del value[name]
        if name in value:
            fill_in(value[name], inner)
    if isinstance(extra, dict):
        for name in value.keys() - properties.keys():
            fill_in(value[name], extra)


def _null_means_default(value: Any, schema: Schema) -> bool:
    return value is None and not schema.get("nullable")


def _null_means_absent(value: Any, schema: Schema) -> bool:
    return value is None and not schema.get("nullable") and "default" not in schema


class Validator:
    """A compiled schema."""

    __slots__ = ("_compiled",)

    def __init__(self, schema: Schema) -> None:
        self._compiled = jsonschema_rs.Draft4Validator(_plain(schema, root=True), validate_formats=True, offline=True)

    def faults(self, obj: Object) -> list[FieldError]:
        """What the schema finds wrong, in the words of the real server."""
        if self._compiled.is_valid(obj):
            return []
        return [_fault(error) for error in self._compiled.iter_errors(obj)]


def _plain(schema: Schema, *, root: bool = False) -> Any:
    """The schema in the vocabulary of JSON Schema draft 4."""
    plain = {k: v for k, v in schema.items() if not k.startswith("x-") and k not in _DROPPED}
    if plain.get("format") not in _FORMATS:
        plain.pop("format", None)
    if schema.get(_EITHER):
        plain.pop("type", None)
        plain["type"] = ["integer", "string"]
        plain.pop("anyOf", None)
    if schema.get("nullable") and "type" in plain:
        kinds = plain["type"] if isinstance(plain["type"], list) else [plain["type"]]
        plain["type"] = [*kinds, "null"]
    for word in ("properties", "patternProperties", "definitions"):
        if isinstance(plain.get(word), dict):
            plain[word] = {k: _plain(v) for k, v in plain[word].items()}
    if root:
        plain["properties"] = {k: v for k, v in (plain.get("properties") or {}).items() if k not in _OWN}
    for word in ("items", "additionalProperties", "not"):
        if isinstance(plain.get(word), dict):
            plain[word] = _plain(plain[word])
    for word in _DEEP_COMBINATIONS:
        if word in plain:
            plain[word] = [_plain(s) for s in plain[word]]
    return plain


def _fault(error: Any) -> FieldError:
    path = _path(error.instance_path)
    kind, value = error.kind, error.instance
    match kind.name:
        case "required":
            return required(f"{path}.{kind.property}".lstrip("."))
        case "enum":
            return not_supported(path, value, (str(o) for o in kind.options))
        case "type":
            wanted = kind.as_dict().get("types") or []
            return FieldError("FieldValueTypeInvalid", path, _type_words(path, value, wanted))
        case "maxLength":
            return FieldError("FieldValueTooLong", path, f"Too long: may not be more than {kind.limit} bytes")
        case "maxItems":
            words = f"Too many: {len(value)}: must have at most {kind.limit} items"
            return FieldError("FieldValueTooMany", path, words)
        case "minimum" | "exclusiveMinimum":
            equal = " or equal to" if kind.name == "minimum" else ""
            words = f"{path} in body should be greater than{equal} {kind.limit}"
        case "maximum" | "exclusiveMaximum":
            equal = " or equal to" if kind.name == "maximum" else ""
            words = f"{path} in body should be less than{equal} {kind.limit}"
        case "pattern":
            words = f"{path} in body should match '{kind.pattern}'"
        case "minLength":
            words = f"{path} in body should be at least {kind.limit} chars long"
        case "minItems":
            words = f"{path} in body should have at least {kind.limit} items"
        case _:
            words = f"{path} in body {error.message}"
    return invalid_value(path, value, words)


def _type_words(path: str, value: Any, wanted: Any) -> str:
    names = wanted if isinstance(wanted, list) else [wanted]
    kind = next((str(n) for n in names if n != "null"), "object")
    got = _json_type(value)
    return f'Invalid value: "{got}": {path} in body must be of type {kind}: "{got}"'


def _json_type(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (dict, "object"))
    for kind, name in kinds:
        if isinstance(value, kind):
            return name
    return "array" if isinstance(value, list) else "null"


def _path(steps: list[Any]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".") or "<nil>"
