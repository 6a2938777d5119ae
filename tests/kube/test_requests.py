"""Requests against a real server that refuses, throttles, breaks, stalls and cuts."""

import asyncio
import socket
import time
from typing import Any

import pytest

from muster.kube.errors import ApiError, LostError, UnsentError
from muster.kube.paths import NODES, PODS, Resource
from muster.kube.requests import Client, Outcome, PatchForm
from muster.objects.pods import Pod
from tests.kube.stub import Stub, client_of, cut, cut_in_body, refuse, run, serving, stall, stall_in_body

POD = PODS.path("default", "a")


def test_reads_and_writes() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        made = await client.create(PODS.path("default"), {"metadata": {"name": "b"}})
        assert made.to(Pod).metadata.name == "b"
        assert (await client.get(POD)).to(Pod).metadata.name == "a"
        patched = await client.patch(POD, {"metadata": {"labels": {"x": "y"}}})
        assert patched.to(Pod).metadata.labels == {"x": "y"}
        assert stub.asked[-1].headers["Content-Type"] == "application/merge-patch+json"
        await client.replace(POD, {"metadata": {"labels": {"x": "z"}}})
        assert stub.objects[POD]["metadata"]["labels"] == {"x": "z"}
        await client.delete(POD, stub.objects[POD]["metadata"]["uid"], grace=0)
        assert stub.asked[-1].tree["gracePeriodSeconds"] == 0
        assert POD not in stub.objects

    run(scenario)


@pytest.mark.parametrize("form", list(PatchForm))
def test_every_patch_form_names_itself(form: PatchForm) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        await client.patch(POD, {}, form, field_manager="muster", force=True)
        assert stub.asked[-1].headers["Content-Type"] == form.value
        assert stub.asked[-1].query == {"fieldManager": "muster", "force": "true"}

    run(scenario)


def test_a_list_is_joined_from_its_pages() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        for index in range(25):
            stub.put(PODS.path("default", f"p{index:02}"))
        page = await client.list(PODS.path(), Pod, labels="a=b", fields="spec.nodeName=", limit=10)
        assert [each.metadata.name for each in page.items] == [f"p{index:02}" for index in range(25)]
        assert page.version == str(stub.version)
        assert len(stub.asked) == 3
        assert stub.asked[0].query["labelSelector"] == "a=b"
        assert stub.asked[0].query["fieldSelector"] == "spec.nodeName="

    run(scenario)


def test_an_object_of_a_wrong_shape_does_not_spoil_the_list() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD, {"spec": {"containers": "none"}})
        stub.put(PODS.path("default", "b"), {"spec": None})
        page = await client.list(PODS.path(), Pod)
        assert [each.metadata.name for each in page.items] == ["b"]
        assert "default/a" in page.broken["default", "a"]

    run(scenario)


def test_a_list_that_is_none_is_lost() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD, {"items": 3})
        with pytest.raises(LostError, match="no list"):
            await client.list(POD, Pod)

    run(scenario)


@pytest.mark.parametrize("fault", [refuse(500), refuse(503), refuse(429), cut, cut_in_body])
def test_reading_goes_on_after_a_fault(fault: Any) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        stub.faults = [("GET", fault)] * 3
        assert (await client.get(POD)).to(Pod).metadata.name == "a"

    run(scenario)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(refuse(500), ApiError), (refuse(504, "Timeout"), ApiError), (cut, LostError), (cut_in_body, LostError)],
)
def test_creating_is_not_tried_again_where_it_could_have_happened(fault: Any, kind: type[Exception]) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("POST", fault)]
        with pytest.raises(kind):
            await client.create(PODS.path("default"), {"metadata": {"name": "b"}})
        assert len(stub.asked) == 1

    run(scenario)


def test_creating_is_tried_again_when_the_server_did_not_look_at_it() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("POST", refuse(429, "TooManyRequests", after="0"))] * 2
        await client.create(PODS.path("default"), {"metadata": {"name": "b"}})
        assert len(stub.asked) == 3

    run(scenario)


def test_retry_after_is_respected() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        stub.faults = [("GET", refuse(429, after="1"))]
        started = time.monotonic()
        await client.get(POD)
        assert time.monotonic() - started >= 1.0

    run(scenario)


def test_a_json_patch_is_sent_once_and_a_merge_patch_again() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        stub.faults = [("PATCH", cut)]
        with pytest.raises(LostError):
            await client.patch(POD, [], PatchForm.JSON)
        stub.faults = [("PATCH", cut)]
        await client.patch(POD, {"metadata": {"labels": {"x": "y"}}})

    run(scenario)


@pytest.mark.parametrize(
    ("code", "reason", "what"),
    [
        (404, "NotFound", "is_missing"),
        (409, "Conflict", "is_conflict"),
        (410, "Gone", "is_gone"),
        (410, "Expired", "is_gone"),
        (429, "TooManyRequests", "is_throttled"),
        (500, "InternalError", "is_server_fault"),
        (504, "Timeout", "is_server_fault"),
    ],
)
def test_refusals_are_told_apart(code: int, reason: str, what: str) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("GET", refuse(code, reason, "because", details={"retryAfterSeconds": 0}))] * 4
        with pytest.raises(ApiError, match="because") as raised:
            await client.get(POD)
        error = raised.value
        assert (error.code, error.reason, error.retry_after) == (code, reason, None)
        kinds = ["is_missing", "is_conflict", "is_gone", "is_throttled", "is_server_fault", "is_budget"]
        assert [each for each in kinds if getattr(error, each)] == [what]

    run(scenario)


def test_a_page_of_a_proxy_becomes_an_error_too() -> None:
    async def page(_: Any) -> Any:
        from aiohttp import web

        return web.Response(status=502, text="<html>\nBad\n gateway", content_type="text/html")

    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("GET", page)] * 4
        with pytest.raises(ApiError, match="<html> Bad gateway") as raised:
            await client.get(POD)
        assert raised.value.code == 502

    run(scenario)


@pytest.mark.parametrize("fault", [stall, stall_in_body])
def test_a_slow_server_is_given_up(fault: Any) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("GET", fault)]
        with pytest.raises(LostError, match="no answer in time"):
            await client.get(POD)

    run(scenario, timeout=0.1, attempts=1)


def test_no_server_is_unsent() -> None:
    async def scenario() -> None:
        with socket.socket() as held:  # bound but not listening: nobody else takes the port meanwhile
            held.bind(("127.0.0.1", 0))
            client = client_of(f"http://127.0.0.1:{held.getsockname()[1]}", attempts=2)
            with pytest.raises(UnsentError):
                await client.get(POD)
            result = await client.bind("default", "a", "u", "n")
            assert result.outcome is Outcome.UNSENT
            await client.transport.close()

    asyncio.run(scenario())


def test_a_server_that_comes_back_is_found() -> None:
    async def scenario() -> None:
        stub = Stub()
        stub.put(POD)
        async with serving(stub) as url:
            port = int(url.rpartition(":")[2])
            client = client_of(url, attempts=1)
            await client.get(POD)
        with pytest.raises((UnsentError, LostError)):
            await client.get(POD)
        async with serving(stub, port=port):
            await client.get(POD)
        await client.transport.close()

    asyncio.run(scenario())


def test_a_bind_carries_the_uid_and_its_own_limit() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        uid = stub.put(POD)["metadata"]["uid"]
        assert (await client.bind("default", "a", uid, "node-1")).outcome is Outcome.DONE
        assert stub.objects[POD]["spec"]["nodeName"] == "node-1"
        assert stub.asked[-1].query == {"timeout": "3s"}
        again = await client.bind("default", "a", uid, "node-2")
        assert (again.outcome, getattr(again.error, "code", 0)) == (Outcome.REFUSED, 409)
        other = await client.bind("default", "a", "another", "node-1")
        assert other.outcome is Outcome.REFUSED

    run(scenario, timeout=2.5)


@pytest.mark.parametrize("fault", [cut, cut_in_body, stall, stall_in_body, refuse(500), refuse(504)])
def test_a_bind_that_may_have_happened_is_unknown_and_sent_once(fault: Any) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        uid = stub.put(POD)["metadata"]["uid"]
        stub.faults = [("binding", fault)]
        result = await client.bind("default", "a", uid, "node-1")
        assert result.outcome is Outcome.UNKNOWN
        assert result.error is not None
        assert len(stub.asked) == 1

    run(scenario, timeout=0.3)


def test_a_throttled_bind_is_tried_again_but_not_beyond_its_time() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        uid = stub.put(POD)["metadata"]["uid"]
        stub.faults = [("binding", refuse(429, after="0"))]
        assert (await client.bind("default", "a", uid, "node-1")).outcome is Outcome.DONE
        stub.faults = [("binding", refuse(429, after="30"))]
        late = await client.bind("default", "a", uid, "node-1", valid_until=time.monotonic() + 15)
        assert late.outcome is Outcome.REFUSED
        assert len(stub.asked) == 3

    run(scenario)


def test_nothing_is_sent_whose_answer_could_come_too_late() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(POD)
        result = await client.bind("default", "a", "u", "n", valid_until=time.monotonic() + 9)
        assert result.outcome is Outcome.UNSENT
        assert not stub.asked

    run(scenario, timeout=10.0, attempts=1)


def test_a_bind_that_waited_too_long_for_its_turn_is_not_sent() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        uid = stub.put(POD)["metadata"]["uid"]
        stub.faults = [("GET", stall)]
        clock = [0.0]
        client.transport.clock = lambda: clock[0]
        first = asyncio.create_task(client.get(POD))
        while not stub.asked:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(client.bind("default", "a", uid, "n", valid_until=20.0))
        await asyncio.sleep(0)
        clock[0] = 15.0
        first.cancel()
        assert (await second).outcome is Outcome.UNSENT
        assert len(stub.asked) == 1

    run(scenario, limit=1)


def test_no_more_requests_run_at_once_than_allowed() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        running, most = 0, 0

        async def count(_: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return await refuse(404)(_)

        stub.faults = [("GET", count)] * 20
        found = await asyncio.gather(*(client.get(POD) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(each, ApiError) for each in found)
        assert most == 4

    run(scenario, limit=4)


def test_evictions_obey_budgets_and_are_safe_to_repeat() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        uid = stub.put(POD)["metadata"]["uid"]
        budget = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}]}
        stub.faults = [("eviction", refuse(429, "TooManyRequests", details=budget))]
        refused = await client.evict("default", "a", uid)
        assert refused.outcome is Outcome.REFUSED
        assert isinstance(refused.error, ApiError)
        assert refused.error.is_budget
        stub.faults = [("eviction", cut)]
        assert (await client.evict("default", "a", uid, grace=5)).outcome is Outcome.DONE
        assert stub.asked[-1].tree["deleteOptions"] == {
            "preconditions": {"uid": uid},
            "gracePeriodSeconds": 5,
        }
        gone = await client.evict("default", "a", uid)
        assert (gone.outcome, getattr(gone.error, "code", 0)) == (Outcome.REFUSED, 404)

    run(scenario)


def test_what_the_server_knows_can_be_asked() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.objects["/apis/batch/v1"] = {"resources": [{"name": "jobs"}, {"name": "jobs/status"}]}
        assert await client.has(Resource("batch", "v1", "jobs"))
        assert not await client.has(Resource("batch", "v1", "cronjobs"))
        assert not await client.has(Resource("ray.io", "v1", "rayclusters"))

    run(scenario)


def test_paths() -> None:
    assert NODES.path(name="n/1") == "/api/v1/nodes/n%2F1"
    jobs = Resource("batch", "v1", "jobs")
    assert jobs.path("a b", "j", "status") == "/apis/batch/v1/namespaces/a%20b/jobs/j/status"
    assert (str(jobs), str(PODS)) == ("jobs.batch", "pods")
