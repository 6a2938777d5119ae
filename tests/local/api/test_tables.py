"""Ages, pod states and columns as kubectl users know them."""

from __future__ import annotations

from typing import Any

import pytest

from muster.local.api import jsonpath
from muster.local.api.tables import duration
from muster.local.api.workload_columns import pod_reason


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (185, "3m5s"), (600, "10m"),
        (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 61, "3h1m"), (8 * 3600 + 61, "8h"),
        (48 * 3600, "2d"), (49 * 3600, "2d1h"), (8 * 86400, "8d"), (729 * 86400, "729d"),
        (730 * 86400, "2y"), (731 * 86400, "2y1d"), (9 * 365 * 86400, "9y"),
    ],
)  # fmt: skip
def test_lengths_of_time(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def a_pod(phase: str, *states: dict[str, Any], **more: Any) -> dict[str, Any]:
    statuses = [{"name": f"c{i}", "state": s, "ready": "running" in s} for i, s in enumerate(states)]
    spec = {"containers": [{"name": f"c{i}"} for i in range(max(len(states), 1))]}
    return {
        "metadata": more.pop("metadata", {}),
        "spec": spec,
        "status": {"phase": phase, "containerStatuses": statuses, **more},
    }


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        (a_pod("Pending"), "Pending"),
        (a_pod("Pending", {"waiting": {"reason": "ContainerCreating"}}), "ContainerCreating"),
        (a_pod("Running", {"running": {}}), "Running"),
        (a_pod("Running", {"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (a_pod("Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}}), "Completed"),
        (a_pod("Failed", {"terminated": {"exitCode": 1, "reason": "Error"}}), "Error"),
        (a_pod("Failed", {"terminated": {"exitCode": 137, "signal": 9}}), "Signal:9"),
        (a_pod("Failed", {"terminated": {"exitCode": 3}}), "ExitCode:3"),
        (a_pod("Failed", reason="Evicted"), "Evicted"),
        (a_pod("Running", {"running": {}}, metadata={"deletionTimestamp": "x"}), "Terminating"),
        (a_pod("Running", {"running": {}}, metadata={"deletionTimestamp": "x"}, reason="NodeLost"), "Unknown"),
        (
            a_pod("Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "SchedulingGated",
        ),
    ],
)
def test_the_status_column_of_a_pod(pod: Any, shown: str) -> None:
    assert pod_reason(pod) == shown


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.count", [3]),
        (".metadata.labels['a.b/c']", ["x"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".spec.list[1]", [20]),
        (".spec.list[-1]", [20]),
        (".spec.list[*]", [10, 20]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.missing.deep", []),
        ("{.spec.count}", [3]),
    ],
)
def test_paths_of_printer_columns(path: str, found: list[Any]) -> None:
    obj = {
        "metadata": {"labels": {"a.b/c": "x"}},
        "spec": {"count": 3, "list": [10, 20]},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    assert jsonpath.compiled(path)(obj) == found


def test_paths_beyond_the_known_corner_are_refused() -> None:
    for path in ("..x", ".a[", "a b"):
        with pytest.raises(jsonpath.PathError):
            jsonpath.compiled(path)
