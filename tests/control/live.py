"""A local cluster and the scheduler beside it, in one process and over real HTTP, for tests that watch both."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
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
    schedulers: list[asyncio.Task[None]] = field(default_factory=list)

    def schedule(self) -> None:
        """Start a scheduler, beside those that run already."""
        work = serve(config.load(self.kubeconfig), SchedulerSettings(BOTH, LEVELS))
        self.schedulers.append(asyncio.create_task(work))

    async def stop(self, scheduler: asyncio.Task[None]) -> None:
        self.schedulers.remove(scheduler)
        scheduler.cancel()
        with suppress(asyncio.CancelledError):
            await scheduler

    def apply(self, *objects: Object) -> None:
        for obj in objects:
            namespace = None if obj["kind"] in CLUSTERWIDE else obj["metadata"].setdefault("namespace", "default")
            self.whole.api.access.create(resource_of(obj), obj, namespace)

    def delete(self, kind: str, name: str) -> None:
        self.whole.api.access.delete(RESOURCES[kind], "default", name, propagation="Background")

    def patch(self, kind: str, name: str, body: Object) -> None:
        self.whole.api.access.patch(RESOURCES[kind], "default", name, body)

    def get(self, kind: str, name: str) -> Object:
        return self.whole.api.access.get(RESOURCES[kind], "default", name)

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


CLUSTERWIDE = {"PriorityClass"}
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
async def live(folder: Path, nodes: Iterable[NodeTemplate], schedulers: int = 1) -> AsyncIterator[Live]:
    whole = await start(Settings(), nodes)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(whole.api.kubeconfig())
    cluster = Live(whole, kubeconfig)
    try:
        for _ in range(schedulers):
            cluster.schedule()
        yield cluster
    finally:
        for scheduler in list(cluster.schedulers):
            await cluster.stop(scheduler)
        await whole.stop()


def on(nodes: int, gpus: int, folder: Path, test: Callable[[Live], Awaitable[None]], *, schedulers: int = 1) -> None:
    """Run a test on a cluster of its own."""

    async def run() -> None:
        template = NodeTemplate(count=nodes, capacity={"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)})
        async with live(folder, [template], schedulers) as cluster:
            await test(cluster)

    asyncio.run(run())


def pod_spec(gpus: int = 1, cpu: str = "1", **more: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
    return {"restartPolicy": "Never", "containers": [container], **more}


def pod(name: str, gpus: int = 1, labels: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(gpus, **spec)}


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
