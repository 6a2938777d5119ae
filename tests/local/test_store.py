"""The store: versions, watching and durability, under any interleaving and under kill -9."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.local.store import (
    ADDED,
    DELETED,
    CompactedError,
    DataInUseError,
    Store,
    VersionConflictError,
    Watcher,
)


def thing(value: Any = None) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "value": value}


def test_a_write_takes_the_next_version_and_writes_it_into_the_object() -> None:
    store = Store()
    first = store.put("pods", ("a", "x"), thing(1), 0)
    second = store.put("pods", ("a", "x"), thing(2), first.revision)
    assert second.revision == first.revision + 1 == store.revision
    assert second.obj["metadata"]["resourceVersion"] == str(second.revision)
    assert b'"value":2' in second.raw


def test_a_conditional_write_is_refused_when_the_object_moved_on() -> None:
    store = Store()
    first = store.put("pods", ("a", "x"), thing(1), 0)
    store.put("pods", ("a", "x"), thing(2))
    for expect in (0, first.revision, 10**15):
        with pytest.raises(VersionConflictError):
            store.put("pods", ("a", "x"), thing(3), expect)
    with pytest.raises(VersionConflictError):
        store.remove("pods", ("a", "y"))


def test_a_scan_is_in_order_within_a_namespace_and_from_a_key() -> None:
    store = Store()
    for key in (("b", "1"), ("a", "2"), ("ab", "1"), ("a", "1")):
        store.put("pods", key, thing())
    assert [key for key, _ in store.scan("pods")] == [("a", "1"), ("a", "2"), ("ab", "1"), ("b", "1")]
    assert [key for key, _ in store.scan("pods", "a")] == [("a", "1"), ("a", "2")]
    assert [key for key, _ in store.scan("pods", "a", ("a", "1"))] == [("a", "2")]
    assert [key for key, _ in store.scan("pods", after=("a", "2"))] == [("ab", "1"), ("b", "1")]


def test_the_past_can_be_seen_as_long_as_it_is_remembered() -> None:
    store = Store()
    store.put("pods", ("a", "kept"), thing(1))
    store.put("pods", ("a", "changed"), thing(1))
    store.put("pods", ("a", "deleted"), thing(1))
    then = store.revision
    store.put("pods", ("a", "changed"), thing(2))
    store.put("pods", ("a", "changed"), thing(3))
    store.put("pods", ("a", "new"), thing(1))
    store.remove("pods", ("a", "deleted"))
    past = store.changed_since("pods", then)
    assert {name: obj and obj["value"] for (_, name), obj in past.items()} == {"changed": 1, "deleted": 1, "new": None}
    store.compact("pods")
    with pytest.raises(CompactedError):
        store.changed_since("pods", then)


def test_a_watcher_that_sleeps_too_long_is_told_so() -> None:
    store = Store(history=4)
    watcher = store.watch(["pods"], store.revision)
    for i in range(10):
        store.put("pods", ("a", f"{i}"), thing())
    with pytest.raises(CompactedError):
        watcher.take()
    with pytest.raises(CompactedError):
        store.watch(["pods"], store.revision - 10)


WRITERS = st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from(["pods", "jobs"]), st.integers(0, 3))
WATCHERS = st.tuples(st.sampled_from(["open", "take"]), st.sampled_from(["pods", "jobs", "both"]), st.integers(0, 3))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(WRITERS, WATCHERS), max_size=60))
def test_any_watcher_sees_each_objects_versions_in_order_and_none_missing(steps: list[tuple[str, str, int]]) -> None:
    store = Store()
    written: list[tuple[int, str, str, tuple[str, str]]] = []
    watchers: list[tuple[Watcher, int, list[str]]] = []
    seen: dict[int, list[tuple[int, str, str, tuple[str, str]]]] = defaultdict(list)

    def take(index: int) -> None:
        seen[index] += [(c.revision, c.kind, c.resource, c.key) for c in watchers[index][0].take()]

    for action, resource, number in steps:
        key = ("a", f"{number}")
        if action == "put":
            kind = "MODIFIED" if store.get(resource, *key) else ADDED
            written.append((store.put(resource, key, thing()).revision, kind, resource, key))
        elif action == "remove" and store.get(resource, *key):
            written.append((store.remove(resource, key).revision, DELETED, resource, key))
        elif action == "open":
            resources = ["pods", "jobs"] if resource == "both" else [resource]
            watchers.append((store.watch(resources, store.revision), store.revision, resources))
        elif action == "take" and watchers:
            take(number % len(watchers))
    for index, (_, since, resources) in enumerate(watchers):
        take(index)
        assert seen[index] == [w for w in written if w[0] > since and w[2] in resources]


def test_concurrent_writers_and_watchers_agree_on_one_order() -> None:
    async def scene() -> None:
        store = Store()
        start, total, chance = store.revision, 200, random.Random(7)

        async def write(writer: int) -> None:
            for i in range(total):
                store.put("pods", (f"{writer}", f"{i % 5}"), thing(i))
                if chance.random() < 0.3:
                    await asyncio.sleep(0)

        async def follow() -> list[int]:
            watcher, found = store.watch(["pods"], start), list[int]()
            while len(found) < 4 * total:
                await watcher.wait()
                found += [change.revision for change in watcher.take()]
            return found

        followers = [asyncio.create_task(follow()) for _ in range(5)]
        await asyncio.gather(*(write(w) for w in range(4)))
        for found in await asyncio.gather(*followers):
            assert found == list(range(start + 1, start + 4 * total + 1))

    asyncio.run(scene())


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("pods", ("a", "x"), thing(1))
    store.put("pods", ("a", "x"), thing(2))
    store.put("pods", ("a", "gone"), thing(3))
    store.remove("pods", ("a", "gone"))
    last = store.revision
    store.close()
    again = Store(tmp_path)
    assert again.revision == last
    assert [(key, r.obj["value"]) for key, r in again.scan("pods")] == [(("a", "x"), 2)]
    assert again.put("pods", ("a", "y"), thing(4)).revision == last + 1
    with pytest.raises(CompactedError):
        again.watch(["pods"], last - 1)
    again.close()


def test_two_processes_cannot_share_a_directory(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(DataInUseError, match="is in use by another cluster"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()


def test_with_group_commit_an_acknowledged_write_is_on_disk_and_seen_only_then(tmp_path: Path) -> None:
    async def scene() -> None:
        store = Store(tmp_path, power_safe=True)
        watcher = store.watch(["pods"], store.revision)

        async def write(i: int) -> None:
            store.put("pods", ("a", f"{i}"), thing(i))
            await store.durable()

        await asyncio.gather(*(write(i) for i in range(100)))
        assert len(watcher.take()) == 100
        store.close()

    asyncio.run(scene())
    again = Store(tmp_path)
    assert again.count("pods") == 100
    again.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from muster.local.store import Store
async def main():
    store = Store(Path(sys.argv[1]), power_safe=sys.argv[2] == "power")
    number = 0
    while True:
        number += 1
        key = ("a", str(number % 7))
        if number % 5 == 0 and store.get("pods", *key):
            revision = store.remove("pods", key).revision
            value = ""
        else:
            revision = store.put("pods", key, {"metadata": {}, "pad": "x" * 2000}).revision
            value = str(revision)
        await store.durable()
        print(key[1], value, flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["process", "power"])
def test_kill_9_at_any_moment_loses_no_acknowledged_write(tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    state: dict[str, str] = {}
    for _ in range(50):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), mode], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(chance.randrange(1, 60)):
            name, _, version = writer.stdout.readline().rstrip("\n").partition(" ")
            state[name] = version
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read()
        writer.wait()
        writer.stdout.close()
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                name, _, version = line.rstrip("\n").partition(" ")
                state[name] = version
        _check_nothing_lost(tmp_path, state)


def _check_nothing_lost(directory: Path, state: dict[str, str]) -> None:
    """Every acknowledged version is there, or a later one that was on its way when the process died."""
    store = Store(directory)
    late = 0
    for name, version in state.items():
        record = store.get("pods", "a", name)
        found = record.obj["metadata"]["resourceVersion"] if record else ""
        if found != version:
            late += 1
            assert not found or not version or int(found) > int(version)
            state[name] = found
    assert late <= 1
    store.close()
