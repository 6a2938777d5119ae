"""Garbage collection: what happens to the dependents of an owner that is gone, or that is going.

In the background (the default) the owner goes first and its dependents follow. In the foreground the owner
waits, held by a finalizer, until the dependents that block it are gone. An owner that orphans lets its
dependents go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Delete, Patch

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner as its dependent names it, and what became of it: None when it is no more."""

    uid: str
    found: Object | None
    blocks: bool


def in_foreground(obj: Object) -> bool:
    return f.going(obj) and FOREGROUND in _finalizers(obj)


def orphaning(obj: Object) -> bool:
    return f.going(obj) and ORPHAN in _finalizers(obj)


def collect(resource: str, obj: Object, owners: Sequence[Owner], has_dependents: bool) -> list[Action]:
    """What becomes of an object with these owners."""
    if f.going(obj) or not owners:
        return []
    gone = [owner for owner in owners if owner.found is None]
    leaving = [owner for owner in owners if owner.found is not None and in_foreground(owner.found) and owner.blocks]
    staying = len(owners) - len(gone) - len(leaving)
    if not gone and not leaving:
        return []
    if staying:
        left = {owner.uid for owner in (*gone, *leaving)}
        kept = [ref for ref in f.meta(obj)["ownerReferences"] if ref["uid"] not in left]
        return [Patch(resource, obj, {"metadata": {"ownerReferences": kept}})]
    foreground = bool(leaving) and has_dependents
    return [Delete(resource, obj, propagation="Foreground" if foreground else "Background")]


def let_go(resource: str, owner: Object, dependents: Iterable[tuple[str, Object]]) -> list[Action]:
    """What an owner that is going does about its dependents before it goes itself."""
    dependents = list(dependents)
    if orphaning(owner):
        freed: list[Action] = [
            Patch(kind, obj, {"metadata": {"ownerReferences": _without(obj, f.uid(owner)) or None}})
            for kind, obj in dependents
        ]
        return [*freed, _drop(resource, owner, ORPHAN)]
    if in_foreground(owner) and not any(_blocks(obj, f.uid(owner)) for _, obj in dependents):
        return [_drop(resource, owner, FOREGROUND)]
    return []


def _finalizers(obj: Object) -> list[str]:
    return f.meta(obj).get("finalizers") or []


def _without(obj: Object, uid: str) -> list[Object]:
    return [ref for ref in f.meta(obj).get("ownerReferences") or () if ref["uid"] != uid]


def _blocks(obj: Object, uid: str) -> bool:
    refs = f.meta(obj).get("ownerReferences") or ()
    return any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs)


def _drop(resource: str, owner: Object, finalizer: str) -> Action:
    left = [name for name in _finalizers(owner) if name != finalizer]
    return Patch(resource, owner, {"metadata": {"finalizers": left or None}})
