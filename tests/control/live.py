"""A local cluster and the scheduler beside it, in one process and over real HTTP, for tests that watch both."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.control.serve import Settings as SchedulerSettings
from muster.control.serve import serve
from muster.kube import config
from muster.local.embedded import Settings
from muster.local.nodes.template import NodeTemplate
from muster.local.whole import Whole, start

Object = dict[str, Any]
LEVELS = ("topology.kubernetes.io/rack",)
BOTH = ("muster", "default-scheduler")
PATIENCE = 60.0


@dataclass(slots=True)
class Live:
    whole: Whole
    kubeconfig: Path

    def apply(self, *objects: Object) -> None:
        for obj in objects:
            namespace = obj["metadata"].setdefault("namespace", "default")
            self.whole.api.access.create(resource_of(obj), obj, namespace)

    def pods(self, namespace: str = "default") -> list[Object]:
        return self.whole.api.access.list("pods", namespace)

    def bound(self, prefix: str = "") -> list[Object]:
        return [p for p in self.pods() if p["metadata"]["name"].startswith(prefix) and p["spec"].get("nodeName")]

    def running(self, prefix: str = "") -> int:
        return sum(
            p["metadata"]["name"].startswith(prefix) and p["status"].get("phase") == "Running" for p in self.pods()
        )

    async def until(self, true: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not true():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"did not come to pass: {what}") from None

    def messages(self, prefix: str = "") -> set[str]:
        return {
            condition.get("message", "")
            for pod in self.pods()
            if pod["metadata"]["name"].startswith(prefix)
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        }


RESOURCES = {
    "Pod": "pods",
    "Job": "batch/jobs",
    "ResourceQuota": "resourcequotas",
    "PodGroup": "scheduling.sigs.k8s.io/podgroups",
    "PriorityClass": "scheduling.k8s.io/priorityclasses",
}


def resource_of(obj: Object) -> str:
    return RESOURCES[obj["kind"]]


@asynccontextmanager
async def live(folder: Path, nodes: Iterable[NodeTemplate]) -> AsyncIterator[Live]:
    whole = await start(Settings(), nodes)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(whole.api.kubeconfig())
    scheduler = asyncio.create_task(serve(config.load(kubeconfig), SchedulerSettings(BOTH, LEVELS)))
    try:
        yield Live(whole, kubeconfig)
    finally:
        scheduler.cancel()
        with suppress(asyncio.CancelledError):
            await scheduler
        await whole.stop()


def pod_spec(gpus: int = 1, cpu: str = "1", **more: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
    return {"restartPolicy": "Never", "containers": [container], **more}


def job(name: str, pods: int, gpus: int = 1, labels: Object | None = None, **spec: Any) -> Object:
    template = {"metadata": {"labels": labels or {}}, "spec": pod_spec(gpus)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "template": template, **spec},
    }


def indexed(name: str, pods: int, gpus: int = 1) -> Object:
    return job(name, pods, gpus, completions=pods, completionMode="Indexed")


def pod_group(name: str, minimum: int) -> Object:
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }
