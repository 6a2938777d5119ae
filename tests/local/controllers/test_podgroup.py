"""PodGroup phases, as the controller of scheduler-plugins sets them."""

from __future__ import annotations

import pytest

from muster.local.api.access import Object
from muster.local.controllers import podgroup
from muster.local.controllers.actions import Patch


def pods(phases: str) -> list[Object]:
    names = {"P": "Pending", "R": "Running", "S": "Succeeded", "F": "Failed"}
    refs = [{"name": "train", "uid": "1"}]
    metadata = {"namespace": "default", "ownerReferences": refs}
    return [{"metadata": {**metadata, "name": str(i)}, "status": {"phase": names[p]}} for i, p in enumerate(phases)]


def after(phase: str, phases: str, least: int = 2) -> Object | None:
    metadata = {"name": "g", "namespace": "default"}
    group = {"metadata": metadata, "spec": {"minMember": least}, "status": {"phase": phase} if phase else {}}
    actions = podgroup.sync(group, pods(phases))
    if not actions:
        return None
    assert isinstance(actions[0], Patch)
    change: Object = actions[0].merge["status"]
    return change


@pytest.mark.parametrize(
    ("phase", "phases", "expected"),
    [
        ("", "", "Pending"),
        ("Pending", "PP", "Scheduling"),
        ("Scheduling", "RP", None),
        ("Scheduling", "RR", "Running"),
        ("Running", "RS", None),
        ("Running", "R", "Pending"),
        ("Running", "SS", "Finished"),
        ("Running", "RF", "Failed"),
        ("Finished", "", None),
        ("Failed", "RR", None),
    ],
)
def test_phases(phase: str, phases: str, expected: str | None) -> None:
    change = after(phase, phases)
    assert (change or {}).get("phase") == expected


def test_counts_and_owners() -> None:
    assert after("Pending", "PP") == {"phase": "Scheduling", "occupiedBy": "default/train"}
    assert after("Scheduling", "RRS") == {"phase": "Running", "running": 2, "succeeded": 1}


def test_nothing_is_written_when_nothing_changed() -> None:
    assert after("Pending", "P") is None
