"""Who set which field: `metadata.managedFields`, kept for objects that somebody applied.

An object nobody applied has none, which costs nothing on the many writes of pods; the first server-side apply
attributes everything that is there to "before-first-apply", as the real server does with objects it has no
record of. Client-side apply begins a record too, for kubectl hands its fields over to server-side apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.local.api import fieldsets
from muster.local.api.errors import ApiError
from muster.local.api.fieldsets import Fields, Path, Shape
from muster.local.api.options import Options
from muster.local.api.preparing import now

Object = dict[str, Any]

APPLY, UPDATE = "Apply", "Update"
BEFORE = "before-first-apply"
_CLIENT_SIDE = "kubectl.kubernetes.io/last-applied-configuration"
_NOBODYS = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "creationTimestamp",
                "deletionGracePeriodSeconds",
                "deletionTimestamp",
                "generation",
                "managedFields",
                "name",
                "namespace",
                "resourceVersion",
                "selfLink",
                "uid",
            )
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Owner:
    """One way of writing to an object."""

    manager: str
    operation: str
    version: str
    subresource: str = ""


Ownership = dict[Owner, tuple[Fields, str]]  # fields, and when they were last written


def owned(obj: Object, shape: Shape) -> Fields:
    """The fields of an object that somebody can own."""
    found = fieldsets.fields_of(obj, shape)
    return frozenset(p for p in found if p[:2] not in _NOBODYS and p[:1] not in _NOBODYS and p)


def read(obj: Object) -> Ownership:
    result: Ownership = {}
    for entry in obj["metadata"].get("managedFields") or ():
        owner = Owner(
            entry.get("manager") or "unknown",
            entry.get("operation") or UPDATE,
            entry.get("apiVersion") or "",
            entry.get("subresource") or "",
        )
        result[owner] = (fieldsets.unpacked(entry.get("fieldsV1")), entry.get("time") or "")
    return result


def write(ownership: Ownership) -> list[Object]:
    entries = []
    for owner, (fields, time) in ownership.items():
        if not fields and owner.operation == UPDATE:
            continue
        entry: Object = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owner.version}
        entry.update(time=time or now(), fieldsType="FieldsV1", fieldsV1=fieldsets.packed(fields))
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    return entries


def begin(obj: Object, shape: Shape, options: Options) -> None:
    """Begin the record of a new object that kubectl applied from the client's side."""
    meta = obj["metadata"]
    if "managedFields" not in meta and _CLIENT_SIDE in (meta.get("annotations") or ()):
        mine = Owner(options.manager, UPDATE, obj["apiVersion"])
        meta["managedFields"] = write({mine: (owned(obj, shape), now())})


def track(new: Object, old: Object, shape: Shape, options: Options, subresource: str) -> None:
    """Attribute what an update changed to who made it. Objects without a record are left without one."""
    given = new["metadata"].get("managedFields")
    if not given:
        return
    ownership = read(new)
    changed, removed = _difference(new, old, shape)
    if not changed and not removed:
        return
    mine = Owner(options.manager, UPDATE, new["apiVersion"], subresource)
    for owner, (fields, time) in list(ownership.items()):
        ownership[owner] = (fields - changed - removed, time)
    before = ownership.get(mine, (frozenset(), ""))[0]
    ownership[mine] = (before | changed, now())
    new["metadata"]["managedFields"] = write(ownership)


def _difference(new: Object, old: Object, shape: Shape) -> tuple[Fields, Fields]:
    after, before = owned(new, shape), owned(old, shape)
    changed = {
        path
        for path in after
        if path not in before
        or (_is_value(path) and fieldsets.value_at(new, path, shape) != fieldsets.value_at(old, path, shape))
    }
    return frozenset(changed), before - after


def _is_value(path: Path) -> bool:
    return not path[-1].startswith("k:")


def conflicts(ownership: Ownership, mine: Owner, live: Object, applied: Object, shape: Shape) -> dict[Owner, Fields]:
    """Fields that an apply would change and others own."""
    wanted = owned(applied, shape)
    changed = frozenset(
        path
        for path in wanted
        if _is_value(path) and fieldsets.value_at(live, path, shape) != fieldsets.value_at(applied, path, shape)
    )
    found = {
        owner: fields & changed
        for owner, (fields, _) in ownership.items()
        if owner != mine and not (owner.manager == mine.manager and owner.operation == APPLY)
    }
    return {owner: fields for owner, fields in found.items() if fields}


def conflict_error(found: dict[Owner, Fields]) -> ApiError:
    """The refusal of an apply that would take fields from others."""
    causes: list[Object] = []
    parts: list[str] = []
    for owner, fields in found.items():
        using = f'"{owner.manager}"'
        if owner.subresource:
            using += f' with subresource "{owner.subresource}"'
        using += f" using {owner.version}"
        paths = sorted(fieldsets.shown(p) for p in fields)
        causes += [{"reason": "FieldManagerConflict", "message": f"conflict with {using}", "field": p} for p in paths]
        one = f"conflict with {using}: {paths[0]}"
        parts.append(one if len(paths) == 1 else f"conflicts with {using}:" + "".join(f"\n- {p}" for p in paths))
    count = len(causes)
    words = f"Apply failed with {count} conflict{'' if count == 1 else 's'}: " + "\n".join(parts)
    return ApiError(409, "Conflict", words, {"causes": causes})
