"""Creating, updating, patching and deleting over HTTP, with the answers clients rely on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.api.serving import MAPS, PODS, Api, config, pod, served

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def job(name: str = "j", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def test_a_new_object_gets_what_only_the_server_gives() -> None:
    async def scene(api: Api) -> None:
        made = await api.ok("POST", PODS, {**pod(), "metadata": {"generateName": "p-"}})
        meta = made["metadata"]
        assert meta["name"].startswith("p-") and len(meta["name"]) == 7
        assert meta["uid"] and meta["resourceVersion"] and meta["creationTimestamp"] and meta["generation"] == 1
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert made["spec"]["tolerations"][0]["tolerationSeconds"] == 300
        assert made["spec"]["priority"] == 0

    served(scene)


def test_conflicts_say_what_happened() -> None:
    async def scene(api: Api) -> None:
        made = await api.ok("POST", MAPS, config(x="1"))
        assert await api.refused(409, "POST", MAPS, config(x="1")) == 'configmaps "c" already exists'
        await api.ok("PUT", f"{MAPS}/c", config(x="2"))
        stale = {**config(x="3"), "metadata": made["metadata"]}
        words = await api.refused(409, "PUT", f"{MAPS}/c", stale)
        assert words == (
            'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        assert "Precondition failed: UID" in await api.refused(
            409, "DELETE", f"{MAPS}/c", {"preconditions": {"uid": "other"}}
        )
        await api.refused(400, "PUT", f"{MAPS}/other", config(x="1"))

    served(scene)


def test_an_update_that_changes_nothing_is_no_new_version() -> None:
    async def scene(api: Api) -> None:
        made = await api.ok("POST", MAPS, config(x="1"))
        again = await api.ok("PUT", f"{MAPS}/c", config(x="1"))
        assert again == made

    served(scene)


def test_dry_runs_answer_and_store_nothing() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", f"{MAPS}?dryRun=All", config(x="1"))
        await api.refused(404, "GET", f"{MAPS}/c")
        await api.ok("POST", MAPS, config(x="1"))
        changed = await api.ok("PATCH", f"{MAPS}/c?dryRun=All", {"data": {"x": "2"}}, Content_Type=MERGE)
        assert changed["data"] == {"x": "2"}
        await api.ok("DELETE", f"{MAPS}/c", {"dryRun": ["All"]})
        assert (await api.ok("GET", f"{MAPS}/c"))["data"] == {"x": "1"}

    served(scene)


def test_generation_counts_changes_of_spec_alone() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", JOBS, job())
        path = f"{JOBS}/j"
        await api.ok("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, Content_Type=MERGE)
        await api.ok("PATCH", f"{path}/status", {"status": {"active": 1}}, Content_Type=MERGE)
        assert (await api.ok("GET", path))["metadata"]["generation"] == 1
        changed = await api.ok("PATCH", path, {"spec": {"suspend": True}}, Content_Type=MERGE)
        assert changed["metadata"]["generation"] == 2 and changed["status"] == {"active": 1}
        ignored = await api.ok("PATCH", f"{path}/status", {"spec": {"suspend": False}}, Content_Type=MERGE)
        assert ignored["spec"]["suspend"] is True

    served(scene)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"completions": 3}, 'Job.batch "j" is invalid: spec.completions: Invalid value: 3: field is immutable'),
        ({"completionMode": "Indexed"}, "spec.completionMode: Invalid value"),
        ({"parallelism": -1}, "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_jobs_refuse_changes_of_what_is_fixed(change: dict[str, Any], words: str) -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", JOBS, job(completions=2, parallelism=2))
        assert words in await api.refused(422, "PATCH", f"{JOBS}/j", {"spec": change}, Content_Type=MERGE)

    served(scene)


def test_a_job_that_would_restart_for_ever_is_refused_in_the_usual_words() -> None:
    async def scene(api: Api) -> None:
        wrong = job()
        del wrong["spec"]["template"]["spec"]["restartPolicy"]
        words = await api.refused(422, "POST", JOBS, wrong)
        assert words == (
            'Job.batch "j" is invalid: spec.template.spec.restartPolicy: Required value: '
            'valid values: "OnFailure", "Never"'
        )

    served(scene)


def test_binding_gives_a_pod_its_node_once() -> None:
    async def scene(api: Api) -> None:
        made = await api.ok("POST", PODS, pod())
        binding: dict[str, Any] = {"metadata": {"uid": "other"}, "target": {"kind": "Node", "name": "n1"}}
        await api.refused(409, "POST", f"{PODS}/p/binding", binding)
        binding["metadata"] = {"uid": made["metadata"]["uid"], "annotations": {"a": "b"}}
        answer = await api.ok("POST", f"{PODS}/p/binding", binding)
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        bound = await api.ok("GET", f"{PODS}/p")
        assert bound["spec"]["nodeName"] == "n1" and bound["metadata"]["annotations"] == {"a": "b"}
        assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
        words = await api.refused(
            409,
            "POST",
            "/api/v1/namespaces/default/bindings",
            {"metadata": {"name": "p"}, "target": {"name": "n2"}},
        )
        assert words == ('Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"')

    served(scene)


def test_deleting_a_pod_is_graceful_once_it_has_a_node() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", PODS, pod("early"))
        assert (await api.ok("DELETE", f"{PODS}/early"))["kind"] == "Pod"
        await api.refused(404, "GET", f"{PODS}/early")
        await api.ok("POST", PODS, pod(nodeName="n1"))
        going = await api.ok("DELETE", f"{PODS}/p")
        assert going["metadata"]["deletionGracePeriodSeconds"] == 30
        sooner = await api.ok("DELETE", f"{PODS}/p?gracePeriodSeconds=5")
        assert sooner["metadata"]["deletionGracePeriodSeconds"] == 5
        words = await api.refused(409, "POST", f"{PODS}/p/binding", {"target": {"name": "n2"}})
        assert "is being deleted, cannot be assigned to a host" in words
        await api.ok("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        await api.refused(404, "GET", f"{PODS}/p")

    served(scene)


def test_finalizers_hold_an_object_until_the_last_is_gone() -> None:
    async def scene(api: Api) -> None:
        held = config(x="1")
        held["metadata"]["finalizers"] = ["example.com/a"]
        await api.ok("POST", MAPS, held)
        going = await api.ok("DELETE", f"{MAPS}/c")
        assert going["metadata"]["deletionTimestamp"]
        more = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
        assert "no new finalizers" in await api.refused(422, "PATCH", f"{MAPS}/c", more, Content_Type=MERGE)
        await api.ok("PATCH", f"{MAPS}/c", {"metadata": {"finalizers": None}}, Content_Type=MERGE)
        await api.refused(404, "GET", f"{MAPS}/c")

    served(scene)


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Background", None), ("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("", ["orphan"])],
)
def test_propagation_leaves_the_right_work_to_the_garbage_collector(policy: str, finalizers: Any) -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", JOBS, job())
        body = {"propagationPolicy": policy} if policy else None
        await api.ok("DELETE", f"{JOBS}/j", body)
        if finalizers is None:
            await api.refused(404, "GET", f"{JOBS}/j")
        else:
            assert (await api.ok("GET", f"{JOBS}/j"))["metadata"]["finalizers"] == finalizers

    served(scene)


def test_a_whole_collection_is_deleted_by_selector() -> None:
    async def scene(api: Api) -> None:
        for name in ("a", "b"):
            made = config(name, x="1")
            made["metadata"]["labels"] = {"name": name}
            await api.ok("POST", MAPS, made)
        deleted = await api.ok("DELETE", f"{MAPS}?labelSelector=name%3Da")
        assert [i["metadata"]["name"] for i in deleted["items"]] == ["a"]
        assert [i["metadata"]["name"] for i in (await api.ok("GET", MAPS))["items"]] == ["b"]

    served(scene)


def test_nothing_is_created_where_a_namespace_is_missing_or_going() -> None:
    async def scene(api: Api) -> None:
        words = await api.refused(404, "POST", "/api/v1/namespaces/none/configmaps", config(x="1"))
        assert words == 'namespaces "none" not found'
        await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "going"}})
        await api.ok("POST", "/api/v1/namespaces/going/pods", pod())
        going = await api.ok("DELETE", "/api/v1/namespaces/going")
        assert going["status"]["phase"] == "Terminating"
        words = await api.refused(403, "POST", "/api/v1/namespaces/going/configmaps", config(x="1"))
        assert words.endswith("unable to create new content in namespace going because it is being terminated")
        gone = {**going, "spec": {"finalizers": []}}
        await api.ok("PUT", "/api/v1/namespaces/going/finalize", gone)
        await api.refused(404, "GET", "/api/v1/namespaces/going")

    served(scene)


def test_eviction_asks_the_disruption_budget() -> None:
    async def scene(api: Api) -> None:
        made = pod(nodeName="n1")
        made["metadata"]["labels"] = {"app": "x"}
        await api.ok("POST", PODS, made)
        await api.ok("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, Content_Type=MERGE)
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await api.ok("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
        await api.refused(429, "POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        status = {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1}
        await api.ok("PATCH", f"{budgets}/b/status", {"status": status}, Content_Type=MERGE)
        words = await api.refused(429, "POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert words == "Cannot evict pod as it would violate the pod's disruption budget."
        await api.ok("PATCH", f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}}, Content_Type=MERGE)
        await api.ok("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert "p" in (await api.ok("GET", f"{budgets}/b"))["status"]["disruptedPods"]
        going = await api.ok("GET", f"{PODS}/p")
        assert going["metadata"]["deletionTimestamp"]
        assert [c["reason"] for c in going["status"]["conditions"]] == ["EvictionByEvictionAPI"]

    served(scene)


def test_scale_reads_and_writes_replicas() -> None:
    async def scene(api: Api) -> None:
        sets = "/apis/apps/v1/namespaces/default/replicasets"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await api.ok("POST", sets, {"metadata": {"name": "r"}, "spec": spec})
        scale = await api.ok("GET", f"{sets}/r/scale")
        assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 2}, "a=b")
        scale["spec"]["replicas"] = 5
        await api.ok("PUT", f"{sets}/r/scale", scale)
        await api.refused(409, "PUT", f"{sets}/r/scale", scale)
        await api.ok("PATCH", f"{sets}/r/scale", {"spec": {"replicas": 1}}, Content_Type=MERGE)
        assert (await api.ok("GET", f"{sets}/r"))["spec"]["replicas"] == 1

    served(scene)


def test_priority_comes_from_the_class_and_from_nowhere_else() -> None:
    async def scene(api: Api) -> None:
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await api.ok("POST", classes, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
        made = await api.ok("POST", PODS, pod(priorityClassName="high"))
        assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "Never")
        words = await api.refused(403, "POST", PODS, pod("q", priority=7))
        assert "the integer value of priority (7) must not be provided in pod spec" in words
        words = await api.refused(422, "PATCH", f"{classes}/high", {"value": 2}, Content_Type=MERGE)
        assert words.endswith("value: Forbidden: may not be changed in an update.")

    served(scene)


def test_limit_ranges_fill_in_and_refuse() -> None:
    async def scene(api: Api) -> None:
        limits = [
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "2"}}
        ]
        await api.ok(
            "POST", "/api/v1/namespaces/default/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}
        )
        made = await api.ok("POST", PODS, pod())
        assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
        big = pod("big")
        big["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
        words = await api.refused(403, "POST", PODS, big)
        assert words == 'pods "big" is forbidden: maximum cpu usage per Container is 2, but limit is 3'

    served(scene)


def test_pods_keep_what_may_not_change() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", PODS, pod())
        change = {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}
        await api.ok("PATCH", f"{PODS}/p", change, Content_Type=STRATEGIC)
        words = await api.refused(422, "PATCH", f"{PODS}/p", {"spec": {"hostname": "x"}}, Content_Type=MERGE)
        assert "pod updates may not change fields other than `spec.containers[*].image`" in words

    served(scene)


def test_server_side_apply_over_its_whole_life() -> None:
    async def scene(api: Api) -> None:
        path = f"{MAPS}/c?fieldManager="
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1", "y": "1"}}
        made = await api("PATCH", f"{path}one", body, Content_Type=APPLY)
        assert made.status == 201
        assert made.body["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:x": {}, "f:y": {}}}
        same = await api.ok("PATCH", f"{path}one", body, Content_Type=APPLY)
        assert same["metadata"]["resourceVersion"] == made.body["metadata"]["resourceVersion"]
        other = {**body, "data": {"x": "2"}}
        words = await api.refused(409, "PATCH", f"{path}two", other, Content_Type=APPLY)
        assert words == 'Apply failed with 1 conflict: conflict with "one" using v1: .data.x'
        await api.ok("PATCH", f"{path}two&force=true", other, Content_Type=APPLY)
        await api.ok("PATCH", f"{path}one", {**body, "data": {}}, Content_Type=APPLY)
        assert (await api.ok("GET", f"{MAPS}/c"))["data"] == {"x": "2"}
        await api.ok("PATCH", f"{path}plain", {"data": {"x": "3"}}, Content_Type=MERGE)
        words = await api.refused(409, "PATCH", f"{path}two", other, Content_Type=APPLY)
        assert 'conflict with "plain"' in words
        await api.refused(422, "PATCH", f"{MAPS}/c", body, Content_Type=APPLY)

    served(scene)
