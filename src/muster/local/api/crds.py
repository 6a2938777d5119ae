"""Custom kinds: a definition becomes resources to serve, rules to check them by, columns to show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.local.api import jsonpath, structural
from muster.local.api.cluster import Cluster
from muster.local.api.errors import FieldError, field_forbidden, invalid_value, not_supported, required
from muster.local.api.options import Options
from muster.local.api.preparing import now
from muster.local.api.resources import Resource
from muster.local.api.tables import Column, Layout, age

Object = dict[str, Any]

DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
_SHIPPED = Path(__file__).parent.parent / "crds"
_PRINTED = ("boolean", "date", "integer", "number", "string")


@dataclass(slots=True)
class CustomKind:
    """One version of a custom kind."""

    schema: Object
    layout: Layout
    validator: structural.Validator

    def prune(self, obj: Object) -> list[str]:
        return structural.prune(obj, self.schema, root=True)

    def default(self, obj: Object) -> None:
        structural.fill_in(obj, self.schema)

    def faults(self, obj: Object, _old: Object | None) -> list[FieldError]:
        return self.validator.faults(obj)


def serve(cluster: Cluster) -> None:
    """Serve the custom kinds defined now, and those defined or removed later."""
    cluster.checks[DEFINITIONS] = faults
    cluster.hooks[DEFINITIONS] = lambda new, old: _changed(cluster, new, old)
    for _, record in list(cluster.store.scan(DEFINITIONS)):
        _install(cluster, record.obj)


def install_shipped(cluster: Cluster) -> None:
    """Install the definitions that come with this package; one changed by the user is left as it is."""
    resource = cluster.catalogue.by_id[DEFINITIONS]
    for path in sorted(_SHIPPED.glob("*.yaml")):
        definition = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        if cluster.store.get(DEFINITIONS, "", definition["metadata"]["name"]) is None:
            cluster.create(resource, definition, "", Options())


def faults(obj: Object, _old: Object | None) -> list[FieldError]:
    """What is wrong with a definition."""
    spec = obj["spec"]
    names = spec.get("names") or {}
    errors = [required(f"spec.{f}") for f in ("group", "scope", "versions") if not spec.get(f)]
    errors += [required(f"spec.names.{f}") for f in ("kind", "plural") if not names.get(f)]
    if errors:
        return errors
    wanted = f"{names['plural']}.{spec['group']}"
    if obj["metadata"].get("name") != wanted:
        words = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", obj["metadata"].get("name"), words))
    if spec["scope"] not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    if sum(1 for v in spec["versions"] if v.get("storage")) != 1:
        words = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", [v.get("name") for v in spec["versions"]], words))
    for i, version in enumerate(spec["versions"]):
        errors += _version_faults(version, f"spec.versions[{i}]")
    return errors


def _version_faults(version: Object, path: str) -> list[FieldError]:
    errors = [] if version.get("name") else [required(f"{path}.name")]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    where = f"{path}.schema.openAPIV3Schema"
    if schema is None:
        return [*errors, required(where, "schemas are required")]
    if schema.get("type") != "object":
        words = "must be object at the root"
        return [*errors, invalid_value(f"{where}.type", schema.get("type", ""), words)]
    errors += _structural_faults(schema, where)
    if not errors:
        try:
            structural.Validator(schema)
        except ValueError as error:
            errors.append(invalid_value(where, "", " ".join(str(error).split())[:300]))
    for i, column in enumerate(version.get("additionalPrinterColumns") or ()):
        place = f"{path}.additionalPrinterColumns[{i}]"
        if column.get("type") not in _PRINTED:
            errors.append(not_supported(f"{place}.type", column.get("type"), _PRINTED))
        try:
            jsonpath.compiled(column.get("jsonPath") or "")
        except jsonpath.PathError as error:
            errors.append(invalid_value(f"{place}.jsonPath", column.get("jsonPath"), str(error)))
    return errors


def _structural_faults(schema: Object, path: str) -> list[FieldError]:
    """A schema must say the type of every field."""
    foreign = [n for n in ("$ref", "definitions", "patternProperties", "dependencies") if schema.get(n)]
    errors = [field_forbidden(f"{path}.{name}", f"{name} is not supported") for name in foreign]
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not free:
        errors.append(required(f"{path}.type", "must not be empty for specified object fields"))
    for name, inner in (schema.get("properties") or {}).items():
        errors += _structural_faults(inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            errors += _structural_faults(schema[name], f"{path}.{name}")
    return errors


def _changed(cluster: Cluster, new: Object | None, old: Object | None) -> None:
    if new is None:
        if old is not None:
            _uninstall(cluster, old)
        return
    if old is None or new["spec"] is not old["spec"]:
        _install(cluster, new)
    _acknowledge(cluster, new)


def _install(cluster: Cluster, definition: Object) -> None:
    spec = definition["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    cluster.catalogue.remove(group, plural)
    storage = next(v["name"] for v in spec["versions"] if v["storage"])
    served = sorted((v for v in spec["versions"] if v.get("served")), key=lambda v: _rank(v["name"]))
    for version in served:
        resource = _resource(spec, version, storage)
        cluster.catalogue.add(resource)
        schema = version["schema"]["openAPIV3Schema"]
        kind = CustomKind(schema, _layout(version), structural.Validator(schema))
        cluster.custom[resource.id, resource.version] = kind


def _rank(version: str) -> tuple[int, str]:
    """Stable versions first, then beta, then alpha."""
    return (2 if "alpha" in version else 1 if "beta" in version else 0, version)


def _resource(spec: Object, version: Object, storage: str) -> Resource:
    names, parts = spec["names"], version.get("subresources") or {}
    scale = parts.get("scale")
    paths = None
    if scale:
        wanted, had = scale.get("specReplicasPath", ""), scale.get("statusReplicasPath", "")
        paths = (wanted, had, scale.get("labelSelectorPath", ""))
    return Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        spec["scope"] == "Namespaced",
        tuple(names.get("shortNames") or ()),
        tuple(p for p in ("status", "scale") if p in parts),
        tuple(names.get("categories") or ()),
        singular=names.get("singular") or names["kind"].lower(),
        storage=storage,
        custom=True,
        scale=paths,
        selectable=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()),
    )


def _uninstall(cluster: Cluster, definition: Object) -> None:
    """A kind that is gone takes its objects along."""
    spec = definition["spec"]
    resource = cluster.catalogue.by_id.get(f"{spec['group']}/{spec['names']['plural']}")
    if resource is None:
        return
    for key, _ in list(cluster.scan(resource, "")):
        cluster.store.remove(resource.id, key)
    cluster.catalogue.remove(resource.group, resource.plural)
    for place in [p for p in cluster.custom if p[0] == resource.id]:
        del cluster.custom[place]


def _acknowledge(cluster: Cluster, definition: Object) -> None:
    """Write the status clients wait for, once per generation of the names."""
    spec, status = definition["spec"], definition.get("status") or {}
    storage = next(v["name"] for v in spec["versions"] if v["storage"])
    stored = list(dict.fromkeys([*(status.get("storedVersions") or ()), storage]))
    if status.get("acceptedNames") == spec["names"] and status.get("storedVersions") == stored:
        return
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    new = {**definition, "metadata": dict(definition["metadata"])}
    new["status"] = {"acceptedNames": spec["names"], "conditions": conditions, "storedVersions": stored}
    resource = cluster.catalogue.by_id[DEFINITIONS]
    record = cluster.record(resource, "", definition["metadata"]["name"])
    cluster.put_unchecked(resource, ("", definition["metadata"]["name"]), new, record)


def _condition(kind: str, reason: str, message: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": now(),
        "reason": reason,
        "message": message,
    }


def _layout(version: Object) -> Layout:
    wanted = version.get("additionalPrinterColumns") or [
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    ]
    columns = [Column("Name", "string", form="name")]
    finders = []
    for c in wanted:
        wide = c.get("priority", 0) > 0
        columns.append(Column(c["name"], c["type"], wide, c.get("format", ""), c.get("description", "")))
        finders.append((jsonpath.compiled(c["jsonPath"]), c["type"]))

    def cells(obj: Object) -> list[Any]:
        return [obj["metadata"]["name"], *(_cell(find(obj), kind) for find, kind in finders)]

    return Layout(tuple(columns), cells)


def _cell(found: list[Any], kind: str) -> Any:
    if not found:
        return "<unknown>" if kind == "date" else None
    value = found[0]
    if kind == "date":
        return age(value if isinstance(value, str) else None)
    if kind in ("integer", "number"):
        return value if isinstance(value, (int, float)) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return ",".join(str(v) for v in found) if len(found) > 1 else str(value)
