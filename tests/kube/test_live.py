"""The same client against a whole cluster: the local one, or that of MUSTER_TEST_KUBECONFIG."""

import asyncio
import contextlib
import importlib
import importlib.util
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from muster.kube import config
from muster.kube.access import Access
from muster.kube.cache import Cache
from muster.kube.errors import ApiError
from muster.kube.events import Events, Note, Subject
from muster.kube.feed import Feed
from muster.kube.lease import contend
from muster.kube.paths import EVENTS, LEASES, NODES, PODS, Resource
from muster.kube.requests import Client, Outcome, PatchForm
from muster.kube.transport import Transport
from muster.objects.pods import Pod
from tests.kube.stub import until

REAL = os.environ.get("MUSTER_TEST_KUBECONFIG", "")
LOCAL = "muster.local.embedded"
NAMESPACES = Resource("", "v1", "namespaces")
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "muster-test"}}
Scenario = Callable[[Access, Client, str], Awaitable[None]]

pytestmark = pytest.mark.skipif(
    not REAL and importlib.util.find_spec("muster.local") is None, reason="there is no cluster"
)


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Access]:
    """Access to a cluster, by a kubeconfig as users have it."""
    if REAL:
        yield config.load(Path(REAL))
        return
    local: Any = importlib.import_module(LOCAL)
    running = await local.start(local.Settings())
    file = folder / "config"
    file.write_text(running.kubeconfig())
    try:
        yield config.load(file)
    finally:
        await running.stop()


def on_cluster(folder: Path, scenario: Scenario) -> None:
    """Run in a namespace of its own, which is deleted afterwards."""

    async def main() -> None:
        async with asyncio.timeout(120), cluster(folder) as access:
            client, space = Client(Transport(access)), f"muster-{token_hex(4)}"
            await client.create(NAMESPACES.path(), {"metadata": {"name": space}})
            try:
                await scenario(access, client, space)
            finally:
                await client.delete(NAMESPACES.path(name=space))
                await client.transport.close()

    asyncio.run(main())


async def pod(client: Client, space: str, name: str) -> Pod:
    """A pod nobody else schedules."""
    spec = {"schedulerName": "muster-test", "containers": [{"name": "c", "image": "pause"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return (await client.create(PODS.path(space), body)).to(Pod)


@asynccontextmanager
async def fed(client: Client, space: str, **options: Any) -> AsyncIterator[Feed[Pod]]:
    feed = Feed(client, PODS.path(space), Pod, Cache[Pod](), **options)
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("watch_list", [True, False])
def test_a_cache_follows_pods_that_come_are_bound_and_go(tmp_path: Path, watch_list: bool) -> None:
    async def scenario(access: Access, client: Client, space: str) -> None:
        for index in range(5):
            await pod(client, space, f"p{index}")
        with contextlib.suppress(ApiError):
            await client.create(NODES.path(), NODE)
        async with fed(client, space, watch_list=watch_list, page=2) as feed:
            await feed.cache.synced.wait()
            assert len(feed.cache.objects) == 5
            one = feed.cache.objects[space, "p0"]
            wrong = await client.bind(space, "p0", "00000000-0000-0000-0000-000000000000", "muster-test")
            assert wrong.outcome is Outcome.REFUSED
            assert (await client.bind(space, "p0", one.metadata.uid, "muster-test")).outcome is Outcome.DONE
            await until(lambda: feed.cache.objects[space, "p0"].spec.node_name == "muster-test")
            again = await client.bind(space, "p0", one.metadata.uid, "muster-test")
            assert isinstance(again.error, ApiError)
            assert again.error.is_conflict
            two = feed.cache.objects[space, "p1"]
            await client.delete(PODS.path(space, "p1"), two.metadata.uid, grace=0)
            await until(lambda: (space, "p1") not in feed.cache.objects)
            three = feed.cache.objects[space, "p2"]
            assert (await client.evict(space, "p2", three.metadata.uid, grace=0)).outcome is Outcome.DONE
            await until(lambda: (space, "p2") not in feed.cache.objects)
            assert feed.lists == 1
        await client.delete(NODES.path(name="muster-test"))

    on_cluster(tmp_path, scenario)


def test_patches_and_refusals(tmp_path: Path) -> None:
    async def scenario(access: Access, client: Client, space: str) -> None:
        await pod(client, space, "a")
        path = PODS.path(space, "a")
        labels = {"metadata": {"labels": {"x": "1"}}}
        for form in (PatchForm.MERGE, PatchForm.STRATEGIC):
            assert (await client.patch(path, labels, form)).to(Pod).metadata.labels["x"] == "1"
        added = [{"op": "add", "path": "/metadata/labels/x", "value": "2"}]
        assert (await client.patch(path, added, PatchForm.JSON)).to(Pod).metadata.labels["x"] == "2"
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
        status = {"status": {"conditions": [condition]}}
        told = await client.patch(PODS.path(space, "a", "status"), status, PatchForm.STRATEGIC)
        assert [each.reason for each in told.to(Pod).status.conditions] == ["Unschedulable"]
        for call, code in (
            (client.get(PODS.path(space, "b")), 404),
            (client.patch(path, {"metadata": {"resourceVersion": "1"}}), 409),
            (pod(client, space, "a"), 409),
            (client.create(PODS.path(space), {"metadata": {"name": "A_B"}}), 422),
        ):
            with pytest.raises(ApiError) as raised:
                await call
            assert raised.value.code == code
        assert await client.has(PODS)
        assert not await client.has(Resource("nobody.example", "v1", "things"))

    on_cluster(tmp_path, scenario)


def test_a_lease_changes_hands(tmp_path: Path) -> None:
    async def scenario(access: Access, client: Client, space: str) -> None:
        free = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        await client.create(LEASES.path(space), free)
        for identity in ("a", "b"):
            lease = contend(access, space, "l", identity, 3)
            task = asyncio.create_task(lease.run())
            await lease.acquired()
            was = lease.valid_until
            await until(lambda lease=lease, was=was: lease.valid_until > was)  # type: ignore[misc]
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await lease.client.transport.close()

    on_cluster(tmp_path, scenario)


def test_events_are_accepted_and_counted(tmp_path: Path) -> None:
    async def scenario(access: Access, client: Client, space: str) -> None:
        one = await pod(client, space, "a")
        events = Events(client, "muster.sh/test", "test-1", series_pause=0.05)
        task = asyncio.create_task(events.run())
        subject = Subject("v1", "Pod", space, "a", one.metadata.uid)

        async def counts() -> list[int]:
            listed = (await client.get(EVENTS.path(space))).to(dict[str, Any])["items"]
            mine = [each for each in listed if each["reason"] == "Unschedulable"]
            return [(each.get("series") or {}).get("count", 1) for each in mine]

        async with asyncio.timeout(30):
            for count in (1, 2):
                events.tell(Note(subject, "Unschedulable", "Scheduling", "needs 4 nodes", warning=True))
                while await counts() != [count]:
                    await asyncio.sleep(0.02)
        task.cancel()

    on_cluster(tmp_path, scenario)
