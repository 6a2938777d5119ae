"""The lease against a real server: taking, keeping, losing and handing over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from muster.kube.access import Access
from muster.kube.lease import Lease, contend
from muster.kube.paths import LEASES
from muster.kube.requests import Client
from tests.kube.stub import Stub, cut, refuse, run, stall, until

PATH = LEASES.path("kube-system", "muster")
FREE = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": "x"}}


@asynccontextmanager
async def contending(stub: Stub, identity: str, duration: int = 1) -> AsyncIterator[Lease]:
    """A contender that runs in the background and gives up in order."""
    lease = contend(Access(stub.url), "kube-system", "muster", identity, duration)
    task = asyncio.create_task(lease.run())
    try:
        yield lease
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await lease.client.transport.close()


def spec(stub: Stub) -> dict[str, object]:
    found: dict[str, object] = stub.objects[PATH]["spec"]
    return found


def test_one_leads_renews_and_hands_over() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(PATH, {**FREE, "metadata": {"labels": {"kept": "yes"}}})
        async with contending(stub, "b") as second:
            async with contending(stub, "a") as first:
                await until(lambda: first.leads or second.leads)
                ahead, behind = (first, second) if first.leads else (second, first)
                was = ahead.valid_until
                await until(lambda: ahead.valid_until > was)
                assert not behind.leads
                assert behind.holder == ahead.election.identity
            await second.acquired()
            assert spec(stub)["holderIdentity"] == "b"
        assert spec(stub)["holderIdentity"] == ""
        assert stub.objects[PATH]["metadata"]["labels"] == {"kept": "yes"}

    run(scenario)


def test_a_lease_that_is_not_there_is_created() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async with contending(stub, "a") as lease:
            await lease.acquired()
            assert spec(stub)["holderIdentity"] == "a"
            assert spec(stub)["leaseDurationSeconds"] == 1
            assert lease.valid_until > client.transport.clock()

    run(scenario)


@pytest.mark.parametrize("rob", ["steal", "delete"])
def test_who_is_robbed_of_the_lease_stops(rob: str) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(PATH, FREE)
        async with contending(stub, "a") as lease:
            await lease.acquired()
            if rob == "steal":
                stub.put(PATH, {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}})
            else:
                stub.drop(PATH)
            await lease.lost()
            assert lease.valid_until <= client.transport.clock()
            await lease.acquired()
            assert spec(stub)["holderIdentity"] == "a"

    run(scenario)


def test_a_cut_off_leader_stops_in_time_and_comes_back() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(PATH, FREE)
        async with contending(stub, "a") as lease:
            await lease.acquired()
            stub.faults = [(PATH, stall)] * 20
            await lease.lost()
            assert "no answer in time" in lease.trouble
            stub.faults = []
            await lease.acquired()
            await until(lambda: not lease.trouble)

    run(scenario)


@pytest.mark.parametrize("fault", [cut, refuse(500), refuse(429, after="0"), refuse(409, "Conflict")])
def test_a_fault_now_and_then_does_not_end_leading(
    fault: Callable[[object], Awaitable[object]],
) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(PATH, FREE)
        async with contending(stub, "a", duration=3) as lease:
            await lease.acquired()
            was = lease.valid_until
            stub.faults = [("PATCH", fault)]  # type: ignore[list-item]
            await until(lambda: not stub.faults and lease.valid_until > was)
            assert lease.leads

    run(scenario)


def test_a_renewal_whose_answer_was_lost_counts_once_it_is_read() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async def done_but_cut(request: object) -> object:
            stub.put(PATH, {"spec": stub.asked[-1].tree["spec"]})
            return await cut(request)  # type: ignore[arg-type]

        stub.put(PATH, FREE)
        async with contending(stub, "a", duration=3) as lease:
            await lease.acquired()
            transitions, was = spec(stub)["leaseTransitions"], lease.valid_until
            stub.faults = [("PATCH", done_but_cut)]  # type: ignore[list-item]
            await until(lambda: not stub.faults and lease.valid_until > was)
            assert spec(stub)["leaseTransitions"] == transitions

    run(scenario)


def test_no_rights_is_said_and_waited_out() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(PATH, FREE)
        stub.faults = [(PATH, refuse(403, "Forbidden", "leases is forbidden"))] * 2
        async with contending(stub, "a") as lease:
            await until(lambda: "leases is forbidden" in lease.trouble)
            await lease.acquired()

    run(scenario)
