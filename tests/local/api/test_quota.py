"""Quotas: what counts, what is refused, and that admission and recounting agree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.local.api import quota
from muster.local.api.bootstrap import prepare
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError
from muster.local.api.inprocess import InProcess
from muster.local.store import Store
from muster.objects.quantity import milli_units


def pod(cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"generateName": "p-"}, "spec": {"containers": [container]}}


def access() -> InProcess:
    cluster = Cluster(Store())
    prepare(cluster)
    return InProcess(cluster)


def limited(api: InProcess, **hard: str) -> None:
    named = {k.replace("_", "."): v for k, v in hard.items()}
    api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": named}}, "default")


@given(st.lists(st.sampled_from(["100m", "1", "1500m", "3"]), max_size=8))
def test_a_quota_is_never_exceeded_and_its_count_is_what_a_recount_gives(asked: list[str]) -> None:
    api = access()
    limited(api, requests_cpu="4", pods="5")
    admitted = []
    for cpu in asked:
        try:
            admitted.append(api.create("pods", pod(cpu), "default"))
        except ApiError as error:
            assert error.code == 403 and "exceeded quota: q, requested: " in error.message
    status = api.get("resourcequotas", "default", "q")["status"]
    recount = quota.total(api.get("resourcequotas", "default", "q"), (("pods", p) for p in admitted))
    assert status["used"] == recount
    assert milli_units(status["used"]["requests.cpu"]) <= 4000 and len(admitted) <= 5


def test_extended_resources_objects_and_scopes_count() -> None:
    gpu = pod("1")
    gpu["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    used = quota.usage("pods", gpu)
    assert used["requests.nvidia.com/gpu"] == 8000 and used["count/pods"] == 1000
    assert quota.usage("batch/jobs", {"spec": {}}) == {"count/jobs.batch": 1000}
    assert quota.usage("pods", {**gpu, "status": {"phase": "Succeeded"}}) == {"count/pods": 1000}
    best = {"spec": {"scopes": ["BestEffort"]}}
    assert not quota.counts(best, "pods", pod("1"))
    assert quota.counts(best, "pods", {"spec": {"containers": [{"name": "c"}]}})
    high = {
        "spec": {
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
            }
        }
    }
    assert quota.counts(high, "pods", {"spec": {"containers": [], "priorityClassName": "high"}})
    assert not quota.counts(high, "pods", {"spec": {"containers": []}})


def test_a_pod_must_state_what_a_quota_limits() -> None:
    api = access()
    limited(api, limits_memory="1Gi")
    try:
        api.create("pods", pod("1"), "default")
    except ApiError as error:
        assert "failed quota: q: must specify limits.memory for: c" in error.message
    else:
        raise AssertionError


def test_counts_of_objects_are_limited_too() -> None:
    api = access()
    api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}, "default")
    api.create("configmaps", {"metadata": {"name": "a"}}, "default")
    try:
        api.create("configmaps", {"metadata": {"name": "b"}}, "default")
    except ApiError as error:
        assert error.message == (
            'configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
            "used: count/configmaps=1, limited: count/configmaps=1"
        )
    else:
        raise AssertionError
