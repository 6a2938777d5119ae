"""Binding against a server that refuses, breaks, loses answers and was quicker: what is settled is the truth."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from muster.control.binder import Binder
from muster.control.seating import Seat
from muster.dialects.cluster import Key
from muster.kube.paths import PODS
from muster.kube.requests import Client
from tests.kube import stub as server
from tests.kube.stub import Stub, cut, refuse

KEY = Key("pod", "default", "a")
POD = PODS.path("default", "a")
Settled = list[tuple[str, str]]


def run(scenario: Callable[[Stub, Binder, Settled], Awaitable[None]], valid_until: float = math.inf) -> None:
    async def main(stub: Stub, client: Client) -> None:
        settled: Settled = []
        binder = Binder(client, lambda: valid_until, lambda seat, node: settled.append((seat.pod, node)))
        await scenario(stub, binder, settled)
        assert not binder.flying

    server.run(main, timeout=2.0)


def seat(stub: Stub, node: str = "n1", name: str = "a") -> Seat:
    path = PODS.path("default", name)
    uid = stub.objects[path]["metadata"]["uid"] if path in stub.objects else "gone"
    return Seat(KEY, "default", name, uid, node)


def node_of(stub: Stub) -> str:
    return str(stub.objects[POD].get("spec", {}).get("nodeName", ""))


async def lose_the_answer(stub: Stub, request: Any) -> Any:
    """The bind happens, and nobody hears of it."""
    stub.put(POD, {"spec": {"nodeName": "n1"}})
    return await cut(request)


def test_many_at_once() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        for index in range(50):
            stub.put(PODS.path("default", f"p{index}"))
        binder.bind(seat(stub, f"n{index}", f"p{index}") for index in range(50))
        await binder.idle()
        assert sorted(settled) == sorted((f"p{index}", f"n{index}") for index in range(50))

    run(scenario)


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_refusal_frees_the_pod(code: int) -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD)
        stub.faults = [("binding", refuse(code))]
        binder.bind([seat(stub)])
        await binder.idle()
        assert settled == [("a", "")]
        binder.bind([seat(stub)])
        await binder.idle()
        assert settled[1:] == [("a", "n1")]

    run(scenario)


def test_a_pod_that_somebody_bound_first_is_where_they_put_it() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD, {"spec": {"nodeName": "n9"}})
        binder.bind([seat(stub)])
        await binder.idle()
        assert settled == [("a", "n9")]

    run(scenario)


def test_a_pod_made_anew_under_its_name_is_another() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD)
        old = seat(stub)
        stub.drop(POD)
        stub.put(POD, {"spec": {"nodeName": "n9"}})
        binder.bind([old])
        await binder.idle()
        assert settled == [("a", "")]

    run(scenario)


def test_a_pod_that_is_gone_is_nowhere() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        binder.bind([seat(stub)])
        await binder.idle()
        assert settled == [("a", "")]

    run(scenario)


@pytest.mark.parametrize("happened", [True, False])
def test_a_lost_answer_is_read_however_often_that_takes(happened: bool) -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD)
        lost = (lambda request: lose_the_answer(stub, request)) if happened else cut
        stub.faults = [("binding", lost), *(("GET", refuse(503)) for _ in range(5))]
        binder.bind([seat(stub)])
        await binder.idle()
        assert stub.faults == []
        assert settled == [("a", "n1" if happened else "")]
        assert node_of(stub) == ("n1" if happened else "")
        assert sum(asked.path.endswith("binding") for asked in stub.asked) == 1

    run(scenario)


def test_nothing_is_sent_that_could_be_answered_after_the_lease() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD)
        binder.bind([seat(stub)])
        await binder.idle()
        assert settled == [("a", "")]
        assert stub.asked == []

    run(scenario, valid_until=time.monotonic() + 0.5)


def test_a_server_that_is_silent_for_good_keeps_nobody_from_leaving() -> None:
    async def scenario(stub: Stub, binder: Binder, settled: Settled) -> None:
        stub.put(POD)
        stub.faults = [("binding", cut), *(("GET", refuse(503)) for _ in range(10_000))]
        binder.client.timeout = 0.3
        binder.bind([seat(stub)])
        async with asyncio.timeout(20):
            await binder.close()
        assert settled == []

    run(scenario)
