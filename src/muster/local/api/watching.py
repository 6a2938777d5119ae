"""A watch over HTTP: what is there, then every change, as lines of JSON."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from muster.local.api.cluster import Cluster
from muster.local.api.errors import bad_request, gone
from muster.local.api.reading import Form, layout_of, parse_version, predicates, rows, stamped
from muster.local.api.requests import Target, parse_bool, parse_int
from muster.local.api.selectors import Predicate
from muster.local.api.tables import partial
from muster.local.store import ADDED, DELETED, MODIFIED, Change, CompactedError, Watcher

Object = dict[str, Any]
Send = Callable[[bytes], Awaitable[None]]

BOOKMARK_EVERY = 60.0
_INITIAL_END = "k8s.io/initial-events-end"
_CHUNK = 500  # initial objects per write


@dataclass(slots=True)
class WatchRequest:
    """A watch, checked and ready to run."""

    cluster: Cluster
    target: Target
    shown: Form
    tests: list[Predicate]
    watcher: Watcher
    since: int
    initial: bool
    bookmarks: bool
    tell_initial_end: bool
    timeout: float
    _headed: bool = field(default=False)

    async def run(self, send: Send) -> None:
        """Stream until the time is up; the caller cancels when the client goes away."""
        try:
            async with asyncio.timeout(self.timeout):
                await self._stream(send)
        except TimeoutError:
            pass
        finally:
            self.watcher.close()

    async def _stream(self, send: Send) -> None:
        if self.initial:
            await self._send_initial(send)
        while True:
            try:
                changes = self.watcher.take()
            except CompactedError:
                await send(_error_event(self.watcher.seen))
                return
            lines = [line for change in changes for line in self._lines(change)]
            if lines:
                await send(b"".join(lines))
            try:
                await asyncio.wait_for(self.watcher.wait(), BOOKMARK_EVERY)
            except TimeoutError:
                if self.bookmarks:
                    await send(self._bookmark({}))

    async def _send_initial(self, send: Send) -> None:
        target = self.target
        found = [
            r for _, r in self.cluster.scan(target.resource, target.namespace) if all(t(r.obj) for t in self.tests)
        ]
        for i in range(0, len(found), _CHUNK):
            await send(b"".join(self._line(ADDED, r.obj, r.raw) for r in found[i : i + _CHUNK]))
        if self.tell_initial_end and self.bookmarks:
            await send(self._bookmark({_INITIAL_END: "true"}, self.since))

    def _lines(self, change: Change) -> list[bytes]:
        namespace = self.target.namespace
        if namespace and change.key[0] != namespace:
            return []
        kind = self._kind_for_client(change)
        if kind == "":
            return []
        if kind == change.kind and not self.shown.shape and self._is_stored_version(change.obj):
            return [change.event()]
        return [self._line(kind, change.obj, change.raw)]

    def _kind_for_client(self, change: Change) -> str:
        """What a change is to a client that sees only the objects its selectors match."""
        if not self.tests:
            return change.kind
        after = change.kind != DELETED and all(t(change.obj) for t in self.tests)
        before = change.previous is not None and all(t(change.previous) for t in self.tests)
        if after:
            return MODIFIED if before else ADDED
        return DELETED if before else ""

    def _is_stored_version(self, obj: Object) -> bool:
        return obj.get("apiVersion") == self.target.resource.api_version

    def _line(self, kind: str, obj: Object, raw: bytes) -> bytes:
        shape = self.shown.shape
        if not shape and self._is_stored_version(obj):
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)
        obj = stamped(self.target.resource, obj)
        if shape == "Table":
            layout = layout_of(self.cluster, self.target.resource)
            shown = rows(layout, [obj], self.shown.include, header=not self._headed)
            self._headed = True
        else:
            shown = partial(obj) if shape == "Partial" else obj
        return orjson.dumps({"type": kind, "object": shown}) + b"\n"

    def _bookmark(self, annotations: Object, revision: int = 0) -> bytes:
        resource = self.target.resource
        meta: Object = {"resourceVersion": str(revision or max(self.watcher.seen, self.since))}
        meta["creationTimestamp"] = None
        if annotations:
            meta["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if self.shown.shape == "Table":
            shown = rows(layout_of(self.cluster, resource), [], "None", header=not self._headed)
            self._headed = True
            shown["metadata"] = {"resourceVersion": meta["resourceVersion"]}
            if annotations:
                width = len(layout_of(self.cluster, resource).columns)
                shown["rows"] = [{"cells": [""] * width, "object": partial(obj)}]
            obj = shown
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


def prepare(cluster: Cluster, target: Target, params: Mapping[str, str], shown: Form) -> WatchRequest:
    """Check a watch request and take its place in the stream. Raises ApiError."""
    since_text = params.get("resourceVersion", "")
    initial_text = params.get("sendInitialEvents")
    _check_match(params, initial_text)
    since = parse_version(since_text)
    now = cluster.store.revision
    wants_initial = since == 0 if initial_text is None else parse_bool(initial_text)
    if since > now:
        raise gone(f"too large resource version: {since}, current: {now}")
    start = now if wants_initial or since == 0 else since
    timeout = parse_int(params.get("timeoutSeconds") or "0", "timeoutSeconds")
    if target.name:
        raise bad_request("a watch of a single object must use fieldSelector=metadata.name=NAME")
    return WatchRequest(
        cluster,
        target,
        shown,
        predicates(target.resource, params),
        cluster.watch([target.resource.id], start),
        start,
        wants_initial,
        parse_bool(params.get("allowWatchBookmarks", "")),
        initial_text is not None and wants_initial,
        timeout if timeout > 0 else random.uniform(1800, 3600),  # noqa: S311 - spreads reconnects
    )


def _check_match(params: Mapping[str, str], initial: str | None) -> None:
    match = params.get("resourceVersionMatch", "")
    if initial is None and match:
        raise bad_request(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
            "sendInitialEvents is provided"
        )
    if initial is not None and match != "NotOlderThan":
        raise bad_request(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )


def _error_event(seen: int) -> bytes:
    status = gone(f"too old resource version: {seen}").status()
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"
