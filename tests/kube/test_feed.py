"""Caches fed by a real server whose watches are cut, outdated, refused and garbled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.kube.cache import Cache, Change
from muster.kube.feed import Feed, Initial, State
from muster.kube.paths import PODS
from muster.kube.requests import Client
from muster.kube.watch import Bookmark, Broken, Event, Kind
from muster.objects.owners import ObjectMeta
from muster.objects.pods import Pod
from tests.kube.stub import QUICK, Stub, cut, cut_in_body, refuse, run, status, until


def path(name: str) -> str:
    return PODS.path("default", name)


@asynccontextmanager
async def fed(client: Client, **options: Any) -> AsyncIterator[Feed[Pod]]:
    """A feed of all pods that runs in the background; it must not end by itself."""
    feed = Feed(client, PODS.path(), Pod, Cache[Pod](), backoff=QUICK, page=3, **options)
    task = asyncio.create_task(feed.run())
    try:
        yield feed
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def equal(stub: Stub, feed: Feed[Pod]) -> bool:
    """Whether the cache is what the server holds."""
    ours = {
        PODS.path(*key): (each.metadata.uid, each.metadata.resource_version) for key, each in feed.cache.objects.items()
    }
    theirs = {
        where: (tree["metadata"]["uid"], tree["metadata"]["resourceVersion"]) for where, tree in stub.objects.items()
    }
    return feed.cache.synced.is_set() and ours == theirs


def watched_again(stub: Stub, before: int) -> bool:
    """Whether there was another request since, and a watch is open."""
    return len(stub.asked) > before and len(stub.watchers) == 1


both = pytest.mark.parametrize("watch_list", [True, False])


@both
def test_lists_then_watches(watch_list: bool) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = watch_list
        for index in range(7):
            stub.put(path(f"p{index}"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed))
            stub.put(path("p1"), {"spec": {"nodeName": "n"}})
            stub.put(path("new"))
            stub.drop(path("p2"))
            await until(lambda: equal(stub, feed))
            assert feed.lists == 1
            assert feed.health.state is State.LIVE
            assert feed.watch_list is watch_list
        reads = [each for each in stub.asked if not each.query.get("watch")]
        assert len(reads) == (0 if watch_list else 3)

    run(scenario)


def test_a_server_too_old_to_refuse_watch_lists_is_listed() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        async def old(request: Any) -> Any:
            from aiohttp import web

            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"default"}}}\n')
            await asyncio.sleep(3600)
            return response

        stub.put(path("a"))
        stub.faults = [("sendInitialEvents", old)]
        async with fed(client, settling=0.05) as feed:
            await until(lambda: equal(stub, feed))
            assert not feed.watch_list

    run(scenario)


@both
def test_a_cut_watch_goes_on_where_it_was(watch_list: bool) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = watch_list
        stub.put(path("a"))
        async with fed(client) as feed:
            for index in range(5):
                await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
                if index % 2:
                    await stub.cut_watches_in_line()
                else:
                    stub.cut_watches()
                stub.put(path(f"p{index}"))
            await until(lambda: equal(stub, feed))
            assert feed.lists == 1

    run(scenario)


@both
def test_an_outdated_version_is_listed_anew(watch_list: bool) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = watch_list
        stub.put(path("a"))
        stub.put(path("b"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
            gone: list[Change[Pod]] = []
            feed.cache.handlers.append(gone.append)
            stub.drop(path("a"))
            stub.put(path("c"))
            stub.cut_watches()
            stub.compact()
            await until(lambda: equal(stub, feed))
            assert feed.lists <= 2  # the two changes may have come through before the cut
            assert [each.kind for each in gone] == [Kind.DELETED, Kind.ADDED]

    run(scenario)


def test_pages_that_expire_are_read_again_in_one() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = False
        for index in range(7):
            stub.put(path(f"p{index}"))
        stub.faults = [("continue=", refuse(410, "Expired"))]
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed))
        lists = [each.query for each in stub.asked if not each.query.get("watch")]
        assert [each.get("limit") for each in lists] == ["3", "3", None]

    run(scenario)


def test_an_error_in_the_watch_does_not_lose_what_came_before() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
            for index in range(3):
                watches = len(stub.asked)
                stub.put(path(f"p{index}"))
                await stub.tell_watches({"type": "ERROR", "object": status(500, "InternalError")})
                await until(partial(watched_again, stub, watches))
            stub.put(path("b"))
            await until(lambda: equal(stub, feed))
            assert feed.lists == 1

    run(scenario)


def test_a_bookmark_moves_on_without_a_change() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
            stub.version = 77
            await stub.tell_watches({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "77"}}})
            await until(lambda: feed.version == "77")
            stub.compact()
            stub.cut_watches()
            stub.put(path("b"))
            await until(lambda: equal(stub, feed))
            assert feed.lists == 1

    run(scenario)


def test_a_version_from_a_lost_future_is_given_up_after_some_tries() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
            stub.faults = [("watch=", refuse(504, "Timeout", "Too large resource version"))] * 3
            stub.cut_watches()
            await until(lambda: not stub.faults and equal(stub, feed) and feed.lists == 2)

    run(scenario)


@pytest.mark.parametrize("fault", [refuse(403, "Forbidden", "pods is forbidden"), refuse(401), refuse(500), cut])
@both
def test_trouble_is_shown_and_waited_out(fault: Any, watch_list: bool) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = watch_list
        stub.put(path("a"))
        stub.faults = [("GET", fault)] * 40
        async with fed(client) as feed:
            await until(lambda: feed.health.state is State.FAILING)
            assert "/api/v1/pods" in feed.health.message
            stub.faults = []
            await until(lambda: equal(stub, feed))
            assert feed.health.state is State.LIVE

    run(scenario)


def test_a_kind_that_does_not_exist_is_an_empty_cache_until_it_does() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.kinds = set()
        async with fed(client) as feed:
            await feed.cache.synced.wait()
            assert feed.health.state is State.ABSENT
            stub.kinds = {"pods"}
            stub.put(path("a"))
            feed.recheck()
            await until(lambda: equal(stub, feed))
            stub.kinds = set()
            stub.cut_watches()
            await until(lambda: feed.health.state is State.ABSENT)
            assert not feed.cache.objects

    run(scenario)


def test_broken_objects_are_left_out_and_named() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"), {"spec": {"containers": 3}})
        stub.put(path("b"))
        async with fed(client) as feed:
            await until(lambda: ("default", "b") in feed.cache.objects)
            assert "default/a" in feed.cache.broken["default", "a"]
            stub.put(path("b"), {"spec": {"priority": "high"}})
            await until(lambda: ("default", "b") in feed.cache.broken)
            assert not feed.cache.objects
            stub.put(path("a"), {})
            stub.drop(path("b"))
            await until(lambda: equal(stub, feed) and not feed.cache.broken)

    run(scenario)


def test_watch_lists_that_do_not_come_through_are_given_up() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        stub.faults = [("sendInitialEvents", cut_in_body)] * 3
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed))
            assert not feed.watch_list

    run(scenario)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "SURPRISE", "object": {}},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {"metadata": 3, "spec": 3}},
    ],
)
def test_a_line_that_makes_no_sense_is_a_cut(line: Any) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed) and len(stub.watchers) == 1)
            asked = len(stub.asked)
            await stub.tell_watches(line)
            await until(partial(watched_again, stub, asked))
            stub.put(path("b"))
            await until(lambda: equal(stub, feed))

    run(scenario)


def test_what_is_deleted_while_all_is_told_is_not_there() -> None:
    initial = Initial[Pod]()
    kept, gone = (Pod(metadata=ObjectMeta(name=name)) for name in ("kept", "gone"))
    for kind, each in ((Kind.ADDED, kept), (Kind.ADDED, gone), (Kind.DELETED, gone)):
        initial.take(Event(kind, each))
    initial.take(Broken(Kind.ADDED, ObjectMeta(name="broken"), "why"))
    initial.take(Bookmark("7"))
    assert list(initial.objects) == [("", "kept")]
    assert initial.broken == {("", "broken"): "why"}


def test_a_quiet_watch_is_renewed_without_a_list() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.put(path("a"))
        async with fed(client, quiet=0.05) as feed:
            await until(lambda: len([each for each in stub.asked if each.query.get("resourceVersion")]) > 4)
            assert equal(stub, feed)
            assert feed.lists == 1
            assert feed.health.state is State.LIVE

    run(scenario)


def test_a_handler_that_fails_ends_the_feed() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        def handler(_: Change[Pod]) -> None:
            raise TimeoutError("mine")

        stub.put(path("a"))
        feed = Feed(client, PODS.path(), Pod, Cache[Pod](handlers=[handler]))
        with pytest.raises(TimeoutError, match="mine"):
            await feed.run()

    run(scenario)


def test_a_line_longer_than_any_buffer_and_lines_in_small_pieces() -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.chunk = 7
        stub.put(path("small"))
        async with fed(client) as feed:
            await until(lambda: equal(stub, feed))
            stub.chunk = 0
            stub.put(path("big"), {"metadata": {"annotations": {"x": "y" * 3_000_000}}})
            await until(lambda: equal(stub, feed))
            assert feed.lists == 1

    run(scenario)


NAMES = st.sampled_from("abc")
SOME = st.sampled_from(["put", "put", "drop", "cut", "tear", "compact", "fault", "error"])
RESTS = st.sampled_from([None, 0.0, 0.002, 0.02])  # seconds; None is until the cache has caught up
DEEDS = st.lists(st.tuples(SOME, NAMES, RESTS), max_size=25)


class Deeds:
    """What happens to the server, by name."""

    def __init__(self, stub: Stub, fault: Any) -> None:
        self.stub = stub
        self.order = fault

    async def do(self, deed: str, name: str) -> None:
        await getattr(self, deed)(name)

    async def put(self, name: str) -> None:
        self.stub.put(path(name))

    async def drop(self, name: str) -> None:
        if path(name) in self.stub.objects:
            self.stub.drop(path(name))

    async def cut(self, _: str) -> None:
        self.stub.cut_watches()

    async def tear(self, _: str) -> None:
        with contextlib.suppress(ConnectionError):
            await self.stub.cut_watches_in_line()

    async def compact(self, _: str) -> None:
        self.stub.compact()

    async def error(self, _: str) -> None:
        with contextlib.suppress(ConnectionError):
            await self.stub.tell_watches({"type": "ERROR", "object": status(410, "Expired")})

    async def fault(self, _: str) -> None:
        self.stub.faults.append(("GET", self.order))


def in_order(stub: Stub) -> Callable[[Change[Pod]], None]:
    """A handler that checks what it is told against all that came before."""
    mirror: dict[str, Pod] = {}
    newest: dict[str, int] = {}

    def handler(change: Change[Pod]) -> None:
        each = change.new or change.old
        assert each is not None
        name, version = each.metadata.name, int(each.metadata.resource_version)
        assert mirror.get(name) is change.old
        if change.kind is Kind.DELETED:
            del mirror[name]
        else:
            assert change.new is not None
            assert version > newest.get(name, 0)
            mirror[name] = change.new
        newest[name] = max(version, newest.get(name, 0))

    return handler


@settings(max_examples=100, deadline=None)
@given(DEEDS, st.booleans(), st.sampled_from([cut, cut_in_body, refuse(410, "Gone"), refuse(429), refuse(500)]))
def test_whatever_happens_the_cache_ends_equal_and_all_is_told_in_order(
    deeds: list[tuple[str, str, float | None]], watch_list: bool, fault: Callable[[Any], Awaitable[Any]]
) -> None:
    async def scenario(stub: Stub, client: Client) -> None:
        stub.watch_list = watch_list
        acts = Deeds(stub, fault)
        feed = Feed(client, PODS.path(), Pod, Cache[Pod](), backoff=QUICK, page=2)
        feed.cache.handlers.append(in_order(stub))
        task = asyncio.create_task(feed.run())
        for deed, name, rest in deeds:
            await acts.do(deed, name)
            if rest is None:
                await until(lambda: task.done() or equal(stub, feed))
            else:
                await asyncio.sleep(rest)
        while stub.faults and not task.done():
            stub.cut_watches()  # or nobody would ask again, and meet the fault
            await asyncio.sleep(0.001)
        await until(lambda: task.done() or equal(stub, feed))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(scenario)
