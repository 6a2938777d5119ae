# mypy: disable-error-code="no-untyped-call,arg-type,union-attr,call-overload"
"""The Python clients people use, unmodified: kubernetes, kubernetes_asyncio, kr8s and lightkube.

They are called as people call them, with dictionaries, which their own annotations do not foresee.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.manifests import config, job, pod

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients' own code


@pytest.fixture
def kubernetes_api(kubeconfig: Path) -> Iterator[Any]:
    from kubernetes import client
    from kubernetes import config as loader

    loaded = client.Configuration()
    loader.load_kube_config(str(kubeconfig), client_configuration=loaded)
    with client.ApiClient(loaded) as api:
        yield api


def test_kubernetes_typed(kubernetes_api: Any, namespace: str) -> None:
    from kubernetes import client, watch

    core = client.CoreV1Api(kubernetes_api)
    core.create_namespaced_pod(namespace, pod("p"))
    seen = set()
    for event in watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=60):
        seen.add(event["type"])
        if event["object"].status.phase == "Running":
            break
    assert "ADDED" in seen
    core.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"x": "1"}}})
    found = core.list_namespaced_pod(namespace, label_selector="x=1", limit=1)
    assert [item.metadata.name for item in found.items] == ["p"]
    gone = core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
    assert gone.metadata.name == "p"


def test_kubernetes_typed_jobs_scale_and_errors(kubernetes_api: Any, namespace: str) -> None:
    from kubernetes import client

    batch = client.BatchV1Api(kubernetes_api)
    batch.create_namespaced_job(namespace, job("j", parallelism=0))
    batch.patch_namespaced_job("j", namespace, {"spec": {"suspend": True}})
    assert batch.read_namespaced_job("j", namespace).spec.suspend is True
    with pytest.raises(client.ApiException) as refused:
        batch.read_namespaced_job("none", namespace)
    assert refused.value.status == 404
    stale = batch.read_namespaced_job("j", namespace)
    batch.patch_namespaced_job("j", namespace, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(client.ApiException) as refused:
        batch.replace_namespaced_job("j", namespace, stale)
    assert refused.value.status == 409


def test_kubernetes_dynamic(kubernetes_api: Any, namespace: str) -> None:
    from kubernetes import dynamic

    found = dynamic.DynamicClient(kubernetes_api)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body=config("c", x="1"), namespace=namespace)
    maps.patch(name="c", namespace=namespace, body={"data": {"z": "2"}}, content_type="application/merge-patch+json")
    assert dict(maps.get(name="c", namespace=namespace).data) == {"x": "1", "z": "2"}
    maps.server_side_apply(config("c", w="3"), name="c", namespace=namespace, field_manager="me")
    assert dict(maps.get(name="c", namespace=namespace).data) == {"x": "1", "z": "2", "w": "3"}


def test_kubernetes_asyncio(kubeconfig: Path, namespace: str) -> None:
    from kubernetes_asyncio import client, watch
    from kubernetes_asyncio import config as loader

    async def scene() -> None:
        loaded = client.Configuration()
        await loader.load_kube_config(str(kubeconfig), client_configuration=loaded)
        async with client.ApiClient(loaded) as api:
            core = client.CoreV1Api(api)
            await core.create_namespaced_config_map(namespace, config("c", x="1"))
            async with watch.Watch() as stream:
                async for event in stream.stream(core.list_namespaced_config_map, namespace, timeout_seconds=30):
                    if event["object"].metadata.name == "c":
                        break
            await core.patch_namespaced_config_map("c", namespace, {"data": {"x": "2"}})
            found = await core.read_namespaced_config_map("c", namespace)
            assert found.data == {"x": "2"}
            await core.delete_namespaced_config_map("c", namespace)

    asyncio.run(scene())


def test_kr8s(kubeconfig: Path, namespace: str) -> None:
    import kr8s
    from kr8s.objects import ConfigMap, Pod

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api = kr8s.api(kubeconfig=str(kubeconfig), namespace=namespace)
        manifest = {**pod("p"), "metadata": {"name": "p", "namespace": namespace}}
        made = Pod(manifest, api=api)
        made.create()
        made.wait("condition=Ready", timeout=60)
        made.label(x="1")
        assert [found.name for found in api.get("pods", namespace=namespace, label_selector={"x": "1"})] == ["p"]
        made.delete()
        held = ConfigMap({**config("c", x="1"), "metadata": {"name": "c", "namespace": namespace}}, api=api)
        held.create()
        held.patch({"data": {"x": "2"}})
        held.refresh()
        assert held.raw["data"] == {"x": "2"}


def test_lightkube(kubeconfig: Path, namespace: str) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.autoscaling_v1 import ScaleSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import ConfigMap

    from tests.cluster.manifests import deployment

    client = Client(KubeConfig.from_file(str(kubeconfig)), namespace=namespace, field_manager="lightkube")
    client.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"x": "1"}))
    client.patch(ConfigMap, "c", {"data": {"y": "2"}})
    client.apply(ConfigMap(metadata=ObjectMeta(name="c"), data={"z": "3"}))
    assert client.get(ConfigMap, "c").data == {"x": "1", "y": "2", "z": "3"}
    client.create(Deployment.from_dict(deployment("d", replicas=0)))
    client.replace(Deployment.Scale(metadata=ObjectMeta(name="d", namespace=namespace), spec=ScaleSpec(replicas=1)))
    deployed = client.get(Deployment, "d")
    assert deployed.spec is not None and deployed.spec.replicas == 1
    with pytest.raises(ApiError):
        client.get(ConfigMap, "none")
    for kind, found in client.watch(ConfigMap, fields={"metadata.name": "c"}):
        assert (kind, found.data) == ("ADDED", {"x": "1", "y": "2", "z": "3"})
        break
    client.delete(ConfigMap, "c")
