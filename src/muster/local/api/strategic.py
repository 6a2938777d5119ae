"""Strategic merge patch: what `kubectl apply`, `edit` and `patch` send for built-in kinds.

Lists of objects merge item by item where the kind says by which key; directives in the patch say the rest:
`$patch` (replace, delete, merge), `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`, `$retainKeys`.
"""

from __future__ import annotations

from typing import Any

from muster.local.api import types
from muster.local.api.errors import bad_request

Object = dict[str, Any]

_DELETE_FROM, _ORDER, _RETAIN = "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys"


def strategic_merge(target: Object, patch: Object, type_name: str) -> Object:
    """The patched object; `target` is left as it is."""
    known = types.fields(type_name) if types.exists(type_name) else {}
    directive = patch.get("$patch")
    if directive == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch type found: {directive}")
    result = _retained(target, patch)
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        _merge_field(result, name, value, known.get(name))
    for name in patch:
        _apply_list_directive(result, name, patch, known)
    return result


def _retained(target: Object, patch: Object) -> Object:
    keys = patch.get(_RETAIN)
    if keys is None:
        return dict(target)
    if not isinstance(keys, list):
        raise bad_request("invalid retainKeys: must be a list")
    return {k: v for k, v in target.items() if k in keys}


def _merge_field(result: Object, name: str, value: Any, field: types.Field | None) -> None:
    if value is None:
        result.pop(name, None)
    elif isinstance(value, dict):
        base = result.get(name)
        inner = field.base if field is not None and field.shape == "" else ""
        result[name] = strategic_merge(base if isinstance(base, dict) else {}, value, inner)
    elif isinstance(value, list) and field is not None and field.keys is not None:
        base = result.get(name)
        result[name] = _merge_list(base if isinstance(base, list) else [], value, field)
    else:
        result[name] = value


def _merge_list(base: list[Any], patch: list[Any], field: types.Field) -> list[Any]:
    if not field.keys:
        return base + [item for item in patch if item not in base]
    key = field.keys[0]
    if any(not isinstance(item, dict) for item in patch):
        raise bad_request(f"expected a list of objects in {field.name}")
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    result = list(base)
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        _merge_item(result, item, key, field.base)
    return result


def _merge_item(result: list[Any], item: Object, key: str, type_name: str) -> None:
    where = next((i for i, have in enumerate(result) if have.get(key) == item[key]), None)
    if item.get("$patch") == "delete":
        result[:] = [have for have in result if have.get(key) != item[key]]
    elif where is None:
        result.append(strategic_merge({}, item, type_name))
    else:
        result[where] = strategic_merge(result[where], item, type_name)


def _apply_list_directive(result: Object, name: str, patch: Object, known: dict[str, types.Field]) -> None:
    if name.startswith(_DELETE_FROM):
        target = name.removeprefix(_DELETE_FROM)
        gone = patch[name] if isinstance(patch[name], list) else []
        if isinstance(result.get(target), list):
            result[target] = [v for v in result[target] if v not in gone]
    elif name.startswith(_ORDER):
        target = name.removeprefix(_ORDER)
        field = known.get(target)
        if field is not None and field.keys is not None and isinstance(result.get(target), list):
            order = patch[name] if isinstance(patch[name], list) else []
            result[target] = _ordered(result[target], order, field.keys[0] if field.keys else "")


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """Items named by the patch in its order; the others keep their place among those known before."""

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(o) for o in order]
    if any(isinstance(w, (dict, list)) for w in wanted):
        raise bad_request("the items of $setElementOrder must name their merge key")
    place = {identity(item): i for i, item in enumerate(items)}
    named = sorted((i for i in items if identity(i) in wanted), key=lambda i: wanted.index(identity(i)))
    others = [i for i in items if identity(i) not in wanted]
    result: list[Any] = []
    while named and others:
        if place[identity(others[0])] < place[identity(named[0])]:
            result.append(others.pop(0))
        else:
            result.append(named.pop(0))
    return result + named + others
