"""Where the embedded cluster keeps its objects: SQLite on disk, everything in memory for reading.

One module hides the three things an API server needs of its store: versions (every write takes the next
number, and can be made conditional on the last one), watching (every change after a version, in order, none
missing, or a clear "too old"), and durability (a write that returned survives kill -9 of the process; with
`power_safe`, one whose `durable()` returned survives a power cut, with many writes sharing one fsync).

Each object is kept decoded and encoded: encoding happens once per write, however many read or watch it.
Everything but the fsyncs runs on one thread, the event loop's, so a read followed by a write is atomic.
"""

from __future__ import annotations

import asyncio
import fcntl
import sqlite3
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

Object = dict[str, Any]
_Rows = list[tuple[str, tuple[Any, ...]]]  # statements and their values
Key = tuple[str, str]  # namespace ("" when there is none) and name

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
CHECKPOINT_EVERY = 4_000  # writes; about 10 MB of log

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deleted (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL);
INSERT OR IGNORE INTO deleted VALUES (0, 0);
"""
_PUT = "REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE id = ?"
_MARK = "UPDATE deleted SET revision = ?"


class VersionConflictError(Exception):
    """The object is not at the version the writer had read."""


class CompactedError(Exception):
    """Changes since that version are no longer kept: list again."""


class DataInUseError(Exception):
    """Another process has this data directory open."""


@dataclass(frozen=True, slots=True)
class Record:
    """One stored object. `obj` is shared: nobody may change it."""

    row: int  # in the database; memory alone knows rows by name, so the disk needs one index fewer
    revision: int
    obj: Object
    raw: bytes


@dataclass(slots=True)
class Change:
    """One write as watchers see it; `previous` tells a filtered watcher whether it had seen the object."""

    revision: int
    kind: str
    resource: str
    key: Key
    obj: Object
    raw: bytes
    previous: Object | None
    _event: bytes = b""

    def event(self) -> bytes:
        """The change as a line of a watch stream, encoded once for all watchers."""
        if not self._event:
            self._event = b'{"type":"%b","object":%b}\n' % (self.kind.encode(), self.raw)
        return self._event


@dataclass(slots=True)
class _Shelf:
    """All objects of one resource, and its recent changes."""

    records: dict[Key, Record] = field(default_factory=dict)
    order: list[Key] | None = None
    log: list[Change] = field(default_factory=list)
    floor: int = 0  # changes up to and including this revision are forgotten
    watchers: set[Watcher] = field(default_factory=set)

    def keys(self) -> list[Key]:
        if self.order is None:
            self.order = sorted(self.records)
        return self.order


class Watcher:
    """A place in the stream of changes of some resources."""

    __slots__ = ("_seen", "_shelves", "_waiter")

    def __init__(self, shelves: list[_Shelf], since: int) -> None:
        self._shelves = shelves
        self._seen = since
        self._waiter: asyncio.Future[None] | None = None
        for shelf in shelves:
            shelf.watchers.add(self)

    def take(self) -> list[Change]:
        """Every change not taken yet, in order. Raises CompactedError when some were forgotten meanwhile."""
        changes: list[Change] = []
        for shelf in self._shelves:
            if self._seen < shelf.floor:
                raise CompactedError
            if shelf.log and shelf.log[-1].revision > self._seen:
                changes += shelf.log[bisect_right(shelf.log, self._seen, key=_revision) :]
        if changes:
            if len(self._shelves) > 1:
                changes.sort(key=_revision)
            self._seen = changes[-1].revision
        return changes

    @property
    def seen(self) -> int:
        return self._seen

    async def wait(self) -> None:
        """Return once there is something to take."""
        if any(shelf.log and shelf.log[-1].revision > self._seen for shelf in self._shelves):
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        for shelf in self._shelves:
            shelf.watchers.discard(self)


def _revision(change: Change) -> int:
    return change.revision


class Store:
    """Objects by resource, namespace and name. `directory` None keeps nothing after the process ends."""

    def __init__(self, directory: Path | None = None, *, power_safe: bool = False, history: int = 20_000) -> None:
        self.power_safe = power_safe and directory is not None
        self._history = history
        self._floor = 0  # nothing is remembered of before this process
        self._shelves: dict[str, _Shelf] = defaultdict(lambda: _Shelf(floor=self._floor))
        self._lock: IO[str] | None = _lock(directory) if directory else None
        self._path = directory / "muster.db" if directory else None
        self._db = _open(self._path, self.power_safe) if self._path else None
        self._thread = ThreadPoolExecutor(1, "store") if self._path else None
        self._writes = self._last_row = 0
        self._pending: list[tuple[Change, _Rows]] = []
        self._group: asyncio.Future[None] | None = None
        self.revision = self._floor = self._load()

    def _load(self) -> int:
        if self._db is None:
            # Beyond any version a client may remember of an earlier cluster at the same address.
            return int(time.time() * 1000)
        (revision,) = self._db.execute("SELECT revision FROM deleted").fetchone()
        for row, resource, namespace, name, rev, body in self._db.execute("SELECT * FROM objects"):
            self._shelves[resource].records[namespace, name] = Record(row, rev, orjson.loads(body), body)
            self._last_row, revision = max(self._last_row, row), max(revision, rev)
        for shelf in self._shelves.values():
            shelf.floor = revision
        return max(int(revision), 1)

    def get(self, resource: str, namespace: str, name: str) -> Record | None:
        return self._shelves[resource].records.get((namespace, name))

    def count(self, resource: str) -> int:
        return len(self._shelves[resource].records)

    def scan(self, resource: str, namespace: str = "", after: Key | None = None) -> Iterable[tuple[Key, Record]]:
        """Objects in order of namespace and name, of one namespace or of all, those after a key only."""
        shelf = self._shelves[resource]
        keys = shelf.keys()
        start = max(after or ("", ""), (namespace, ""))
        for key in keys[bisect_right(keys, start) :] if start != ("", "") else keys:
            if namespace and key[0] != namespace:
                return
            yield key, shelf.records[key]

    def put(self, resource: str, key: Key, obj: Object, expect: int | None = None) -> Record:
        """Write an object, which from now on belongs to the store. `expect` 0: it must not exist yet."""
        shelf = self._shelves[resource]
        old = shelf.records.get(key)
        if expect is not None and expect != (old.revision if old else 0):
            raise VersionConflictError
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        row = old.row if old else self._last_row + 1
        record = Record(row, revision, obj, orjson.dumps(obj))
        kind = MODIFIED if old else ADDED
        change = Change(revision, kind, resource, key, obj, record.raw, old.obj if old else None)
        self._save(change, [(_PUT, (row, resource, *key, revision, record.raw))])
        self._last_row = max(self._last_row, row)
        shelf.records[key] = record
        if old is None:
            shelf.order = None
        return record

    def remove(self, resource: str, key: Key, last: Object | None = None) -> Record:
        """Delete an object. Watchers are told its last state, at the version of the deletion."""
        shelf = self._shelves[resource]
        old = shelf.records.get(key)
        if old is None:
            raise VersionConflictError
        last = last or old.obj
        revision = self.revision + 1
        obj = {**last, "metadata": {**last["metadata"], "resourceVersion": str(revision)}}
        record = Record(old.row, revision, obj, orjson.dumps(obj))
        change = Change(revision, DELETED, resource, key, obj, record.raw, old.obj)
        self._save(change, [(_REMOVE, (old.row,)), (_MARK, (revision,))])
        del shelf.records[key]
        shelf.order = None
        return record

    def watch(self, resources: Iterable[str], since: int) -> Watcher:
        """Changes after a version. Raises CompactedError when some of them are no longer kept."""
        shelves = [self._shelves[resource] for resource in resources]
        if any(since < shelf.floor for shelf in shelves):
            raise CompactedError
        return Watcher(shelves, since)

    def changed_since(self, resource: str, since: int) -> dict[Key, Object | None]:
        """What objects written since a version were at it; None for those that were not there."""
        shelf = self._shelves[resource]
        if since < shelf.floor:
            raise CompactedError
        start = bisect_right(shelf.log, since, key=_revision)
        return {change.key: change.previous for change in reversed(shelf.log[start:])}

    def floor(self, resource: str) -> int:
        return self._shelves[resource].floor

    async def durable(self) -> None:
        """Return once every write so far is as durable as this store promises."""
        if self._group is not None:
            await asyncio.shield(self._group)

    def compact(self, resource: str) -> None:
        """Forget all changes of a resource so far; watchers that have not taken them must list again."""
        shelf = self._shelves[resource]
        shelf.log.clear()
        shelf.floor = self.revision

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        if self._db is not None:
            if self._pending:
                _commit(self._db, [row for _, rows in self._pending for row in rows])
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()
        if self._lock is not None:
            self._lock.close()

    def _save(self, change: Change, rows: _Rows) -> None:
        self.revision = change.revision
        if self.power_safe and self._db is not None:
            self._pending.append((change, rows))
            if self._group is None:
                loop = asyncio.get_running_loop()
                self._group = loop.create_task(self._commit_groups(self._db))
            return
        if self._db is not None:
            self._write_through(self._db, change.revision, rows)
        self._publish(change)

    def _write_through(self, db: sqlite3.Connection, revision: int, rows: _Rows) -> None:
        try:
            if len(rows) == 1:
                db.execute(*rows[0])
            else:
                _commit(db, rows)
        except sqlite3.Error:
            self.revision = revision - 1
            raise
        self._writes += 1
        if self._writes % CHECKPOINT_EVERY == 0 and self._thread and self._path:
            self._thread.submit(_checkpoint, self._path)

    async def _commit_groups(self, db: sqlite3.Connection) -> None:
        """Write what has gathered, as one transaction, until nothing has gathered meanwhile."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # let the other requests of this turn of the loop join
        while self._pending:
            group, self._pending = self._pending, []
            rows = [row for _, rows in group for row in rows]
            await loop.run_in_executor(self._thread, _commit, db, rows)
            for change, _ in group:
                self._publish(change)
        self._group = None

    def _publish(self, change: Change) -> None:
        shelf = self._shelves[change.resource]
        shelf.log.append(change)
        if len(shelf.log) > self._history + self._history // 4:
            shelf.floor = shelf.log[-self._history - 1].revision
            del shelf.log[: -self._history]
        for watcher in shelf.watchers:
            watcher.wake()


def _lock(directory: Path) -> IO[str]:
    directory.mkdir(parents=True, exist_ok=True)
    handle = (directory / "lock").open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise DataInUseError(f"{directory} is in use by another cluster: stop it, or give another --data") from None
    return handle


def _open(path: Path, power_safe: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=16)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
    if not power_safe:
        db.execute("PRAGMA wal_autocheckpoint = 0")  # an fsync on the loop's thread would stop the cluster
    db.executescript(_SCHEMA)
    return db


def _commit(db: sqlite3.Connection, rows: _Rows) -> None:
    db.execute("BEGIN")
    try:
        for statement, values in rows:
            db.execute(statement, values)
        db.execute("COMMIT")
    except sqlite3.Error:
        db.execute("ROLLBACK")
        raise


def _checkpoint(path: Path) -> None:
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    db.close()
