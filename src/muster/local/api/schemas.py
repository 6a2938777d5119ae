"""The table of types as JSON schemas: what `kubectl explain` shows and `apply` checks against."""

from __future__ import annotations

from typing import Any

from muster.local.api import types
from muster.local.api.resources import Resource

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PRIMITIVES: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "any": {"type": "object"},
}
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_DESCRIPTIONS = {
    "apiVersion": "The group and version of this object's kind.",
    "kind": "The kind of this object.",
    "metadata": "Name, labels, annotations and what the server knows about the object itself.",
    "spec": "What is wanted.",
    "status": "What is, as last observed.",
}


def name_of(type_name: str) -> str:
    """The name of a type's schema, as the real server calls it."""
    group, version, kind = type_name.split(".")
    if group == "meta":
        return _META + kind
    if group == "apiextensions":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
    return f"io.k8s.api.{group}.{version}.{kind}"


def of_resource(resource: Resource) -> str:
    """The name of the schema of a resource's kind."""
    if resource.custom:
        return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))
    return name_of(resource.type)


def scalars() -> dict[str, Schema]:
    """The two types that are neither objects nor plain JSON types."""
    return {
        QUANTITY: {"type": "string", "description": "An amount: 2, 500m, 16Gi."},
        INT_OR_STRING: {"type": "string", "format": "int-or-string", "description": "A number or a name."},
    }


def closure(roots: list[str], prefix: str) -> dict[str, Schema]:
    """Schemas of some types and of every type they mention, by schema name. `prefix` starts references."""
    found: dict[str, Schema] = {}
    waiting = list(roots)
    while waiting:
        type_name = waiting.pop()
        if name_of(type_name) in found:
            continue
        found[name_of(type_name)] = _object(type_name, prefix)
        waiting += [f.base for f in types.fields(type_name).values() if not f.primitive]
    return found


def _object(type_name: str, prefix: str) -> Schema:
    fields = types.fields(type_name)
    schema: Schema = {"type": "object", "description": f"{type_name.rpartition('.')[2]} of {type_name}."}
    schema["properties"] = {name: _property(f, prefix) for name, f in fields.items()}
    required = [name for name, f in fields.items() if f.required]
    if required:
        schema["required"] = required
    return schema


def _property(field: types.Field, prefix: str) -> Schema:
    schema = _base(field.base, prefix)
    if field.shape.endswith("["):
        schema = {"type": "array", "items": schema}
        _merging(schema, field)
    if field.shape.startswith("{"):
        schema = {"type": "object", "additionalProperties": schema}
    if "$ref" not in schema:
        schema = {**schema, "description": _DESCRIPTIONS.get(field.name, "")}
        if not schema["description"]:
            del schema["description"]
    return schema


def _merging(schema: Schema, field: types.Field) -> None:
    if field.keys is None:
        schema["x-kubernetes-list-type"] = "atomic"
    elif field.keys:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(field.keys)
        schema["x-kubernetes-patch-merge-key"] = field.keys[0]
        schema["x-kubernetes-patch-strategy"] = "merge"
    else:
        schema["x-kubernetes-list-type"] = "set"
        schema["x-kubernetes-patch-strategy"] = "merge"


def _base(base: str, prefix: str) -> Schema:
    if base == "Quantity":
        return {"$ref": prefix + QUANTITY}
    if base == "IntOrString":
        return {"$ref": prefix + INT_OR_STRING}
    return dict(_PRIMITIVES[base]) if base in _PRIMITIVES else {"$ref": prefix + name_of(base)}


def of_kinds(resources: list[Resource], prefix: str, custom: dict[tuple[str, str], Schema]) -> dict[str, Schema]:
    """The schemas some kinds need, the kinds marked as such."""
    found = closure([r.type for r in resources if not r.custom], prefix)
    if any(r.custom for r in resources):
        found.update(closure(["meta.v1.ObjectMeta"], prefix))
    for resource in resources:
        if resource.custom:
            found[of_resource(resource)] = _custom(custom.get((resource.id, resource.version)) or {}, prefix)
        marked = found[of_resource(resource)]
        marked["x-kubernetes-group-version-kind"] = [
            {"group": resource.group, "version": resource.version, "kind": resource.kind}
        ]
    return {**found, **scalars()}


def _custom(schema: Schema, prefix: str) -> Schema:
    """A custom kind's own schema, with the fields every object has."""
    own = {k: v for k, v in schema.items() if k != "properties"}
    properties = dict(schema.get("properties") or {})
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string", "description": _DESCRIPTIONS[name]}
    properties["metadata"] = {"$ref": f"{prefix}{_META}ObjectMeta"}
    return {"type": "object", **own, "properties": properties}
