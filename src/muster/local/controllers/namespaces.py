"""Namespace deletion: everything inside goes first, then the namespace."""

from __future__ import annotations

from collections.abc import Mapping

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Delete, Finalize
from muster.local.controllers.merging import status_patch


def sync(namespace: Object, contents: Mapping[str, list[Object]], now: float) -> list[Action]:
    """The next step of a namespace that is going, with what is in it by resource."""
    if not f.going(namespace):
        return []
    left = {resource: objects for resource, objects in contents.items() if objects}
    if not left:
        return [Finalize(namespace)]
    deletions: list[Action] = [
        Delete(resource, obj, propagation="Background")
        for resource, objects in left.items()
        for obj in objects
        if not f.going(obj)
    ]
    return [*_status(namespace, left, now), *deletions]


def _status(namespace: Object, left: Mapping[str, list[Object]], now: float) -> list[Action]:
    counted = ", ".join(f"{_dotted(kind)} has {len(objects)} resource instances" for kind, objects in left.items())
    held: dict[str, int] = {}
    for objects in left.values():
        for obj in objects:
            for finalizer in f.meta(obj).get("finalizers") or ():
                held[finalizer] = held.get(finalizer, 0) + 1
    waits = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(held.items()))
    found = f.conditions(namespace)
    message = f"Some resources are remaining: {counted}"
    found = f.with_condition(found, "NamespaceContentRemaining", "True", "SomeResourcesRemain", message, now)
    if waits:
        message = f"Some content in the namespace has finalizers remaining: {waits}"
        found = f.with_condition(found, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message, now)
    status = {**f.status(namespace), "phase": "Terminating", "conditions": found}
    return [*status_patch("namespaces", namespace, status)]


def _dotted(resource: str) -> str:
    group, _, plural = resource.rpartition("/")
    return f"{plural}.{group}"
