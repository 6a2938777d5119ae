"""Say only what changed: the JSON merge patch from one document to another (RFC 7396)."""

from __future__ import annotations

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Patch


def difference(old: Object, new: Object) -> Object:
    """The merge patch that turns `old` into `new`; a None in `new` means absent."""
    patch: Object = {key: None for key, value in old.items() if value is not None and new.get(key) is None}
    for key, value in new.items():
        if value is None or (key in old and old[key] == value):
            continue
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = difference(before, value)
        else:
            patch[key] = _without_none(value)
    return patch


def _without_none(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value


def status_patch(resource: str, obj: Object, status: Object) -> list[Patch]:
    """A patch of the status, if it changed."""
    change = difference(f.status(obj), status)
    return [Patch(resource, obj, {"status": change}, "status")] if change else []
