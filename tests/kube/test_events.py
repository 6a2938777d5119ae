"""Events: told without waiting, written once, counted after."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.kube.events import FORGET_AFTER, Events, Note, Subject
from muster.kube.requests import Client
from tests.kube.stub import Stub, cut, refuse, run, until

SUBJECT = Subject("v1", "Pod", "team", "worker-0", "uid-1")
NOTE = Note(SUBJECT, "Unschedulable", "Scheduling", "needs 4 nodes; 1 is free", warning=True)


@asynccontextmanager
async def writing(client: Client, **options: Any) -> AsyncIterator[Events]:
    """Events that are written in the background."""
    events = Events(client, "muster", "muster-1", **{"rate": 1000.0, "series_pause": 0.01} | options)
    task = asyncio.create_task(events.run())
    try:
        yield events
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_the_same_said_again_is_one_event_with_a_count() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async with writing(client) as events:
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 1)
            (path, made), *_ = stub.objects.items()
            assert path.startswith("/apis/events.k8s.io/v1/namespaces/team/events/worker-0.")
            assert made["regarding"]["uid"] == "uid-1"
            assert (made["type"], made["reason"], made["note"]) == ("Warning", NOTE.reason, NOTE.text)
            assert "series" not in made
            for _ in range(50):
                events.tell(NOTE)
            await until(lambda: stub.objects[path].get("series", {}).get("count") == 51)
            assert len(stub.objects) == 1

    run(scenario)


def test_different_things_are_different_events() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async with writing(client) as events:
            events.tell(NOTE)
            events.tell(Note(SUBJECT, "Scheduled", "Binding", "x" * 5000))
            events.tell(Note(Subject("v1", "Node", "", "n", "u"), "Full", "Planning", "é" * 600))
            await until(lambda: len(stub.objects) == 3)
            notes = [each["note"] for each in stub.objects.values()]
            assert all(len(each.encode()) <= 1024 for each in notes)
            assert any("/default/events/n." in each for each in stub.objects)

    run(scenario)


def test_what_was_long_ago_is_news_again() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        now = [0.0]
        async with writing(client, clock=lambda: now[0]) as events:
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 1)
            now[0] += FORGET_AFTER + 1
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 2)

    run(scenario)


def test_an_event_the_server_forgot_is_written_anew() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async with writing(client) as events:
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 1)
            stub.drop(next(iter(stub.objects)))
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 1)

    run(scenario)


@pytest.mark.parametrize("fault", [cut, refuse(403, "Forbidden"), refuse(500)])
def test_a_refused_event_stops_no_other(fault: Any) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.faults = [("POST", fault)]
        async with writing(client) as events:
            events.tell(NOTE)
            events.tell(Note(SUBJECT, "Other", "Scheduling", "other"))
            await until(lambda: len(stub.objects) == 1)
            events.tell(NOTE)
            await until(lambda: len(stub.objects) == 2)

    run(scenario)


def test_more_than_can_be_kept_is_dropped_and_counted() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        now = [0.0]
        events = Events(client, "muster", "muster-1", most=3, clock=lambda: now[0])
        for index in range(5):
            events.tell(Note(SUBJECT, f"R{index}", "Scheduling", ""))
        assert events.dropped == 2
        task = asyncio.create_task(events.run())
        await until(lambda: len(stub.objects) == 3)
        now[0] += FORGET_AFTER + 1
        events.tell(Note(SUBJECT, "R4", "Scheduling", ""))
        assert events.dropped == 2
        task.cancel()

    run(scenario)
