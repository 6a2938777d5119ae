"""Lists, tables and watches over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.local.api.serving import MAPS, PODS, Api, config, pod, served

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_pages_are_one_consistent_view_whatever_happens_between_them() -> None:
    async def scene(api: Api) -> None:
        for i in range(5):
            await api.ok("POST", MAPS, config(f"c{i}", x=str(i)))
        first = await api.ok("GET", f"{MAPS}?limit=2")
        assert names(first) == ["c0", "c1"] and first["metadata"]["remainingItemCount"] == 3
        await api.ok("DELETE", f"{MAPS}/c2")
        await api.ok("POST", MAPS, config("c22", x="new"))
        await api.ok("PUT", f"{MAPS}/c3", config("c3", x="changed"))
        rest = await api.ok("GET", f"{MAPS}?limit=10&continue={first['metadata']['continue']}")
        assert names(rest) == ["c2", "c3", "c4"]
        assert rest["items"][1]["data"] == {"x": "3"}
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        version = first["metadata"]["resourceVersion"]
        exact = await api.ok("GET", f"{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert names(exact) == ["c0", "c1", "c2", "c3", "c4"]
        api.server.store.compact("configmaps")
        await api.refused(410, "GET", f"{MAPS}?limit=10&continue={first['metadata']['continue']}")

    served(scene)


def test_an_object_as_a_table_or_as_metadata_alone() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", PODS, pod("p"))
        table = await api.ok("GET", PODS, Accept=TABLE)
        head = [c["name"] for c in table["columnDefinitions"]]
        assert head[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
        row = table["rows"][0]
        assert row["cells"][:4] == ["p", "0/1", "Pending", "0"]
        assert row["object"]["kind"] == "PartialObjectMetadata"
        bare = await api.ok("GET", f"{PODS}?includeObject=None", Accept=TABLE)
        assert "object" not in bare["rows"][0]
        partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        metadata = await api.ok("GET", PODS, Accept=partial)
        assert metadata["kind"] == "PartialObjectMetadataList" and "spec" not in metadata["items"][0]
        await api.refused(406, "GET", PODS, Accept="application/vnd.kubernetes.protobuf")

    served(scene)


def test_a_watch_begins_with_what_is_there_and_misses_nothing() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", MAPS, config("a", x="1"))
        watching = asyncio.create_task(api.events(f"{MAPS}?watch=1", 4))
        while not watching.done():
            await api.ok("PUT", f"{MAPS}/a", config("a", x="2"))
            await api.ok("PUT", f"{MAPS}/a", config("a", x="3"))
            await asyncio.sleep(0.01)
        events = await watching
        assert events[0]["type"] == "ADDED" and all(e["type"] == "MODIFIED" for e in events[1:])
        versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
        assert versions == sorted(set(versions))

    served(scene)


def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", MAPS, config("a", x="1"))
        asked = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        added, bookmark = await api.events(f"{MAPS}?{asked}", 2)
        assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
        meta = bookmark["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(meta["resourceVersion"]) >= int(added["object"]["metadata"]["resourceVersion"])

    served(scene)


def test_a_selecting_watch_sees_objects_come_into_view_and_leave_it() -> None:
    async def scene(api: Api) -> None:
        version = (await api.ok("GET", MAPS))["metadata"]["resourceVersion"]
        path = f"{MAPS}?watch=1&labelSelector=seen&resourceVersion={version}"
        made = config("a", x="1")
        await api.ok("POST", MAPS, made)
        for labels in ({"seen": "1"}, {"seen": "2"}, {}):
            made["metadata"]["labels"] = labels
            await api.ok("PUT", f"{MAPS}/a", made)
        assert [e["type"] for e in await api.events(path, 3)] == ["ADDED", "MODIFIED", "DELETED"]

    served(scene)


def test_a_watch_as_tables_has_one_row_an_event_and_one_header() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", MAPS, config("a", x="1"))
        await api.ok("POST", MAPS, config("b", x="1"))
        found = []
        headers = {"Authorization": "Bearer secret", "Accept": TABLE}
        async with api.session.get(f"{MAPS}?watch=1", headers=headers) as answer:
            async for line in answer.content:
                found.append(line)
                if len(found) == 2:
                    break
        import orjson

        first, second = (orjson.loads(line)["object"] for line in found)
        assert first["kind"] == "Table" and first["columnDefinitions"] and not second["columnDefinitions"]
        assert [len(t["rows"]) for t in (first, second)] == [1, 1]

    served(scene)


def test_a_watch_that_fell_behind_is_told_to_list_again() -> None:
    async def scene(api: Api) -> None:
        version = (await api.ok("GET", MAPS))["metadata"]["resourceVersion"]
        await api.ok("POST", MAPS, config("a", x="1"))
        api.server.store.compact("configmaps")
        words = await api.refused(410, "GET", f"{MAPS}?watch=1&resourceVersion={version}")
        assert words.startswith(f"too old resource version: {version} (")

    served(scene)


def test_every_watcher_of_twenty_sees_every_change() -> None:
    async def scene(api: Api) -> None:
        version = (await api.ok("GET", MAPS))["metadata"]["resourceVersion"]
        path = f"{MAPS}?watch=1&resourceVersion={version}"
        watchers = [asyncio.create_task(api.events(path, 50)) for _ in range(20)]
        for i in range(50):
            await api.ok("POST", MAPS, config(f"c{i:02}", x="1"))
        for seen in await asyncio.gather(*watchers):
            assert [e["object"]["metadata"]["name"] for e in seen] == [f"c{i:02}" for i in range(50)]

    served(scene)
