"""Garbage collection, case by case, as a table of what owners became."""

from __future__ import annotations

from typing import Any

import pytest

from muster.local.api.access import Object
from muster.local.controllers import garbage
from muster.local.controllers.actions import Action, Delete, Patch


def thing(
    name: str, *owners: str, finalizers: tuple[str, ...] = (), going: bool = False, blocks: bool = True
) -> Object:
    refs = [{"uid": owner, "name": owner, "blockOwnerDeletion": blocks} for owner in owners]
    metadata: Object = {"name": name, "uid": name, "namespace": "default", "ownerReferences": refs}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


ALIVE = thing("alive")
LEAVING = thing("leaving", finalizers=(garbage.FOREGROUND,), going=True)


def collect(*found: Object | None, dependents: bool = False, blocks: bool = True) -> list[Action]:
    owners = [garbage.Owner(f"o{i}", owner, blocks) for i, owner in enumerate(found)]
    obj = thing("obj", *(owner.uid for owner in owners))
    return garbage.collect("configmaps", obj, owners, dependents)


@pytest.mark.parametrize(
    ("found", "dependents", "propagation"),
    [([None], False, "Background"), ([None, None], True, "Background"), ([LEAVING], True, "Foreground")],
)
def test_without_an_owner_that_stays_it_goes(found: list[Any], dependents: bool, propagation: str) -> None:
    (action,) = collect(*found, dependents=dependents)
    assert isinstance(action, Delete)
    assert action.propagation == propagation


def test_with_an_owner_that_stays_only_the_references_go() -> None:
    (action,) = collect(None, ALIVE, LEAVING)
    assert isinstance(action, Patch)
    assert [ref["uid"] for ref in action.merge["metadata"]["ownerReferences"]] == ["o1"]


def test_an_owner_it_does_not_block_may_leave_without_it() -> None:
    assert collect(LEAVING, blocks=False) == []
    assert collect(ALIVE) == []


def test_the_foreground_waits_for_those_that_block() -> None:
    blocking, other = thing("a", "leaving"), thing("b", "leaving", blocks=False)
    assert garbage.let_go("jobs", LEAVING, [("pods", blocking), ("pods", other)]) == []
    (action,) = garbage.let_go("jobs", LEAVING, [("pods", other)])
    assert isinstance(action, Patch)
    assert action.merge == {"metadata": {"finalizers": None}}


def test_orphans_are_freed_before_their_owner_goes() -> None:
    owner = thing("owner", finalizers=("mine", garbage.ORPHAN), going=True)
    first, second, last = garbage.let_go(
        "jobs", owner, [("pods", thing("a", "owner")), ("pods", thing("b", "owner", "x"))]
    )
    assert isinstance(first, Patch)
    assert isinstance(second, Patch)
    assert isinstance(last, Patch)
    assert first.merge == {"metadata": {"ownerReferences": None}}
    assert [ref["uid"] for ref in second.merge["metadata"]["ownerReferences"]] == ["x"]
    assert last.merge == {"metadata": {"finalizers": ["mine"]}}
