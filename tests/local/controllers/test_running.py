"""Controllers and simulated nodes together on the real API, with a clock of the test's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster.local.api import bootstrap
from muster.local.api.access import Object
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError
from muster.local.api.inprocess import InProcess
from muster.local.api.options import Options
from muster.local.api.verbs import bind
from muster.local.clock import VirtualClock
from muster.local.controllers.running import start_controllers
from muster.local.nodes.running import start_nodes
from muster.local.nodes.template import FAILED, NodeTemplate
from muster.local.store import Store

QUICK = {"muster.sh/sim-start-delay": "1s"}


class World:
    """A whole cluster but for the scheduler, which `place` stands in for."""

    def __init__(self) -> None:
        self.store = Store(None)
        self.cluster = Cluster(self.store)
        bootstrap.prepare(self.cluster)
        self.api = InProcess(self.cluster)
        self.clock = VirtualClock(time.time())

    async def play(self, story: Callable[[World], Awaitable[None]]) -> None:
        self.controllers = start_controllers(self.api, self.clock)
        nodes = start_nodes(self.api, [NodeTemplate(count=2)], self.clock, root=Path("unused"))
        try:
            await story(self)
        finally:
            await nodes.stop()
            await self.controllers.stop()
            self.store.close()

    async def settle(self) -> None:
        calm = 0
        while calm < 20:
            before = self.store.revision
            await asyncio.sleep(0)
            self.place()
            calm = calm + 1 if self.controllers.idle and self.store.revision == before else 0

    async def sleep(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        await self.settle()
        while self.clock.step(until):
            await self.settle()

    def place(self) -> None:
        for pod in self.api.list("pods"):
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
                name = pod["metadata"]["name"]
                target = {"target": {"kind": "Node", "name": f"node-{sum(map(ord, name)) % 2}"}}
                bind(self.cluster, pod["metadata"]["namespace"], name, target, Options())

    def apply(self, resource: str, kind: str, name: str, **body: Any) -> Object:
        group, version = {"apps": "apps/v1", "batch": "batch/v1", "policy": "policy/v1"}, "v1"
        version = group.get(resource.partition("/")[0], version)
        metadata = {"name": name, "namespace": body.pop("namespace", "default"), **body.pop("metadata", {})}
        return self.api.create(resource, {"apiVersion": version, "kind": kind, "metadata": metadata, **body})

    def get(self, resource: str, name: str, namespace: str | None = "default") -> Object:
        return self.api.get(resource, namespace, name)

    def gone(self, resource: str, name: str, namespace: str | None = "default") -> bool:
        try:
            self.api.get(resource, namespace, name)
        except ApiError as error:
            return error.code == 404
        return False

    def pods(self, labels: str = "") -> list[Object]:
        return self.api.list("pods", "default", labels)

    def reasons(self) -> set[str]:
        return {event["reason"] for event in self.api.list("events")}


def template(labels: dict[str, str] | None = None, policy: str = "Never", image: str = "x", **notes: str) -> Object:
    run = {f"muster.sh/sim-{key.replace('_', '-')}": value for key, value in notes.items()}
    metadata = {"labels": labels or {"app": "web"}, "annotations": {**QUICK, **run}}
    resources = {"requests": {"cpu": "1"}}
    containers = [{"name": "main", "image": image, "resources": resources}]
    return {"metadata": metadata, "spec": {"restartPolicy": policy, "containers": containers}}


def service(**more: Any) -> Object:
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template(policy="Always"), **more}


def run(story: Callable[[World], Awaitable[None]]) -> None:
    asyncio.run(World().play(story))


def test_a_job_runs_to_its_end() -> None:
    async def story(w: World) -> None:
        w.apply(
            "batch/jobs",
            "Job",
            "train",
            spec={"parallelism": 3, "completions": 5, "template": template(run_time="10s")},
        )
        await w.sleep(60)
        job = w.get("batch/jobs", "train")
        assert job["status"]["succeeded"] == 5
        assert [c["type"] for c in job["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        assert all("finalizers" not in pod["metadata"] for pod in w.pods())
        assert w.reasons() >= {"SuccessfulCreate", "Completed"}

    run(story)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_deleting_a_job_does_to_its_pods_what_was_asked(propagation: str) -> None:
    async def story(w: World) -> None:
        w.apply("batch/jobs", "Job", "train", spec={"template": template(run_time="1h")})
        await w.sleep(5)
        w.api.delete("batch/jobs", "default", "train", propagation=propagation)
        await w.sleep(60)
        assert w.gone("batch/jobs", "train")
        assert len(w.pods()) == (propagation == "Orphan")
        assert all("ownerReferences" not in p["metadata"] and "finalizers" not in p["metadata"] for p in w.pods())

    run(story)


def test_a_job_held_up_by_a_quota_goes_on_when_the_quota_goes() -> None:
    async def story(w: World) -> None:
        w.apply("resourcequotas", "ResourceQuota", "q", spec={"hard": {"requests.cpu": "2", "pods": "10"}})
        await w.settle()
        w.apply(
            "batch/jobs", "Job", "train", spec={"parallelism": 4, "completions": 4, "template": template(run_time="1h")}
        )
        await w.settle()
        assert len(w.pods()) == 2
        assert w.get("resourcequotas", "q")["status"]["used"] == {"requests.cpu": "2", "pods": "2"}
        assert "FailedCreate" in w.reasons()
        w.api.delete("resourcequotas", "default", "q")
        await w.settle()
        assert len(w.pods()) == 4

    run(story)


def test_a_quota_gets_back_what_ended() -> None:
    async def story(w: World) -> None:
        w.apply("resourcequotas", "ResourceQuota", "q", spec={"hard": {"requests.cpu": "2"}})
        await w.settle()
        job = {"parallelism": 4, "completions": 4, "template": template(run_time="5s")}
        w.apply("batch/jobs", "Job", "train", spec=job)
        await w.sleep(300)
        assert w.get("batch/jobs", "train")["status"]["succeeded"] == 4
        assert w.get("resourcequotas", "q")["status"]["used"] == {"requests.cpu": "0"}

    run(story)


def test_a_deployment_rolls_over_without_losing_availability() -> None:
    async def story(w: World) -> None:
        w.apply("apps/deployments", "Deployment", "web", spec=service(replicas=4))
        await w.sleep(30)
        assert w.get("apps/deployments", "web")["status"]["availableReplicas"] == 4
        new = template(policy="Always", image="y")["spec"]
        w.api.patch("apps/deployments", "default", "web", {"spec": {"template": {"spec": new}}})
        least = 4
        for _ in range(60):
            await w.sleep(1)
            least = min(least, w.get("apps/deployments", "web")["status"].get("availableReplicas", 0))
        web = w.get("apps/deployments", "web")
        assert least >= 3
        assert {pod["spec"]["containers"][0]["image"] for pod in w.pods()} == {"y"}
        assert (web["status"]["updatedReplicas"], web["status"]["replicas"]) == (4, 4)
        assert web["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        progressing = next(c for c in web["status"]["conditions"] if c["type"] == "Progressing")
        assert progressing["reason"] == "NewReplicaSetAvailable"
        old = template(policy="Always", image="x")["spec"]
        w.api.patch("apps/deployments", "default", "web", {"spec": {"template": {"spec": old}}})
        await w.sleep(60)
        assert {pod["spec"]["containers"][0]["image"] for pod in w.pods()} == {"x"}
        assert len(w.api.list("apps/replicasets")) == 2
        assert w.get("apps/deployments", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"

    run(story)


def test_a_deployment_scales_recreates_and_goes_with_all_it_made() -> None:
    async def story(w: World) -> None:
        w.apply("apps/deployments", "Deployment", "web", spec=service(replicas=1, strategy={"type": "Recreate"}))
        await w.sleep(10)
        w.api.patch("apps/deployments", "default", "web", {"spec": {"replicas": 3}})
        await w.sleep(10)
        assert len(w.pods()) == 3
        new = template(policy="Always", image="y")["spec"]
        w.api.patch("apps/deployments", "default", "web", {"spec": {"template": {"spec": new}}})
        await w.sleep(20)
        assert {pod["spec"]["containers"][0]["image"] for pod in w.pods()} == {"y"}
        w.api.delete("apps/deployments", "default", "web", propagation="Foreground")
        await w.sleep(30)
        assert (w.pods(), w.api.list("apps/replicasets"), w.api.list("apps/deployments")) == ([], [], [])

    run(story)


def test_a_statefulset_comes_and_goes_in_order() -> None:
    async def story(w: World) -> None:
        w.apply("apps/statefulsets", "StatefulSet", "db", spec=service(replicas=3, serviceName="db"))
        seen: list[list[str]] = []
        for _ in range(20):
            await w.sleep(0.5)
            names = [pod["metadata"]["name"] for pod in w.pods()]
            if not seen or seen[-1] != names:
                seen.append(names)
        assert seen == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
        assert w.pods()[1]["spec"]["hostname"] == "db-1"
        assert w.pods()[1]["spec"]["subdomain"] == "db"
        w.api.patch("apps/statefulsets", "default", "db", {"spec": {"replicas": 1}})
        await w.sleep(30)
        assert [pod["metadata"]["name"] for pod in w.pods()] == ["db-0"]
        status = w.get("apps/statefulsets", "db")["status"]
        assert (status["replicas"], status["readyReplicas"]) == (1, 1)

    run(story)


def test_a_statefulset_replaces_its_pods_from_the_top() -> None:
    async def story(w: World) -> None:
        spec = service(replicas=2, serviceName="db", podManagementPolicy="Parallel")
        w.apply("apps/statefulsets", "StatefulSet", "db", spec=spec)
        await w.sleep(10)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in w.pods()}
        new = template(policy="Always", image="y")["spec"]
        w.api.patch("apps/statefulsets", "default", "db", {"spec": {"template": {"spec": new}}})
        await w.sleep(30)
        after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in w.pods()}
        status = w.get("apps/statefulsets", "db")["status"]
        assert after.keys() == before.keys()
        assert not set(after.values()) & set(before.values())
        assert status["currentRevision"] == status["updateRevision"]

    run(story)


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    async def story(w: World) -> None:
        w.api.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        w.apply("batch/jobs", "Job", "train", namespace="team", spec={"template": template(run_time="1h")})
        w.apply("configmaps", "ConfigMap", "c", namespace="team", data={"a": "b"})
        held = w.apply("configmaps", "ConfigMap", "h", namespace="team", metadata={"finalizers": ["example.com/held"]})
        await w.sleep(5)
        w.api.delete("namespaces", None, "team")
        await w.sleep(60)
        team = w.get("namespaces", "team", None)
        conditions = {c["type"]: c["message"] for c in team["status"]["conditions"]}
        held_up = "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
        assert conditions["NamespaceFinalizersRemaining"] == held_up
        assert [p["metadata"]["name"] for p in w.api.list("configmaps", "team")] == ["h"]
        w.api.patch("configmaps", "team", held["metadata"]["name"], {"metadata": {"finalizers": None}})
        await w.sleep(5)
        assert w.gone("namespaces", "team", None)
        assert w.api.list("events", "team") == []

    run(story)


def test_a_lost_node_is_tainted_and_its_pods_leave_when_it_is_back_or_given_up() -> None:
    async def story(w: World) -> None:
        w.apply("apps/replicasets", "ReplicaSet", "web", spec=service(replicas=6))
        await w.sleep(10)
        there = [pod["metadata"]["name"] for pod in w.pods() if pod["spec"]["nodeName"] == "node-0"]
        assert there
        w.api.patch("nodes", None, "node-0", {"metadata": {"annotations": {FAILED: "40s"}}})
        await w.sleep(39)
        assert "taints" not in w.get("nodes", "node-0", None)["spec"]
        await w.sleep(2)
        node = w.get("nodes", "node-0", None)
        assert {(t["key"], t["effect"]) for t in node["spec"]["taints"]} == {
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        }
        assert {c["status"] for c in node["status"]["conditions"]} == {"Unknown"}
        assert not any(
            c["status"] == "True" for c in w.get("pods", there[0])["status"]["conditions"] if c["type"] == "Ready"
        )
        await w.sleep(290)
        assert not w.get("pods", there[0])["metadata"].get("deletionTimestamp")
        await w.sleep(15)
        pod = w.get("pods", there[0])
        assert pod["metadata"]["deletionTimestamp"]
        disrupted = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert disrupted["reason"] == "DeletionByTaintManager"
        w.api.patch("nodes", None, "node-0", {"metadata": {"annotations": {FAILED: None}}})
        await w.sleep(30)
        assert w.gone("pods", there[0])
        assert "taints" not in w.get("nodes", "node-0", None)["spec"]

    run(story)


def test_pods_of_a_deleted_node_are_given_up_after_a_while() -> None:
    async def story(w: World) -> None:
        w.apply("batch/jobs", "Job", "train", spec={"template": template(run_time="1h"), "backoffLimit": 0})
        await w.sleep(10)
        (pod,) = w.pods()
        w.api.delete("nodes", None, pod["spec"]["nodeName"])
        await w.sleep(30)
        assert not w.gone("pods", pod["metadata"]["name"])
        await w.sleep(30)
        assert w.gone("pods", pod["metadata"]["name"])
        assert w.get("batch/jobs", "train")["status"]["failed"] == 1

    run(story)


def test_a_budget_says_how_many_may_go_and_eviction_keeps_to_it() -> None:
    async def story(w: World) -> None:
        w.apply("apps/replicasets", "ReplicaSet", "web", spec=service(replicas=3))
        selector = {"matchLabels": {"app": "web"}}
        w.apply(
            "policy/poddisruptionbudgets", "PodDisruptionBudget", "b", spec={"maxUnavailable": 1, "selector": selector}
        )
        await w.sleep(10)
        status = w.get("policy/poddisruptionbudgets", "b")["status"]
        assert (status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)
        first, second, _ = [pod["metadata"]["name"] for pod in w.pods()]
        w.api.evict("default", first)
        with pytest.raises(ApiError) as refused:
            w.api.evict("default", second)
        assert refused.value.code == 429
        await w.sleep(10)
        assert w.get("policy/poddisruptionbudgets", "b")["status"]["disruptionsAllowed"] == 1

    run(story)


def test_endpoints_follow_the_pods_of_a_service() -> None:
    async def story(w: World) -> None:
        w.apply(
            "services", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
        )
        w.apply("apps/replicasets", "ReplicaSet", "web", spec=service(replicas=2))
        await w.sleep(10)
        (subset,) = w.get("endpoints", "web")["subsets"]
        assert sorted(a["ip"] for a in subset["addresses"]) == sorted(p["status"]["podIP"] for p in w.pods())
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        w.api.delete("services", "default", "web")
        await w.sleep(5)
        assert w.gone("endpoints", "web")

    run(story)


def test_custom_owners_take_their_dependents_along() -> None:
    async def story(w: World) -> None:
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        }
        w.api.create("apiextensions.k8s.io/customresourcedefinitions", definition)
        await w.settle()
        body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "default"}}
        owner = w.api.create("example.com/gadgets", body)
        ref = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "g", "uid": owner["metadata"]["uid"]}
        w.apply("configmaps", "ConfigMap", "c", metadata={"ownerReferences": [ref]})
        lost = {**ref, "uid": "11111111-2222-3333-4444-555555555555"}
        w.apply("configmaps", "ConfigMap", "stale", metadata={"ownerReferences": [lost]})
        unknown = {**ref, "apiVersion": "nowhere.example.com/v1"}
        w.apply("configmaps", "ConfigMap", "unknown", metadata={"ownerReferences": [unknown]})
        await w.sleep(1)
        assert w.gone("configmaps", "stale")
        assert not w.gone("configmaps", "c")
        w.api.delete("example.com/gadgets", "default", "g")
        await w.sleep(1)
        assert w.gone("configmaps", "c")
        assert not w.gone("configmaps", "unknown")

    run(story)


def test_a_restart_makes_no_pod_twice() -> None:
    async def story(w: World) -> None:
        w.apply(
            "batch/jobs", "Job", "train", spec={"parallelism": 5, "completions": 5, "template": template(run_time="1h")}
        )
        await w.sleep(5)
        before = {pod["metadata"]["uid"] for pod in w.pods()}
        await w.controllers.stop()
        w.controllers = start_controllers(w.api, w.clock)
        await w.sleep(30)
        assert {pod["metadata"]["uid"] for pod in w.pods()} == before

    run(story)
