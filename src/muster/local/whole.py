"""The whole local cluster in one process: the API server, the controllers and the nodes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from muster.local import embedded
from muster.local.api.errors import ApiError
from muster.local.api.pod_logs import LogQuery
from muster.local.clock import Clock, SystemClock
from muster.local.controllers.running import Running as Controllers
from muster.local.controllers.running import start_controllers
from muster.local.nodes.running import Running as Nodes
from muster.local.nodes.running import start_nodes
from muster.local.nodes.template import KIND, PROCESS, NodeTemplate

Object = dict[str, Any]


@dataclass(slots=True)
class Whole:
    """A running cluster."""

    api: embedded.Embedded
    controllers: Controllers
    nodes: Nodes
    scratch: tempfile.TemporaryDirectory[str] | None

    async def stop(self) -> None:
        """Stop everything, the API last."""
        await self.nodes.stop()
        await self.controllers.stop()
        await self.api.stop()
        if self.scratch is not None:
            self.scratch.cleanup()


async def start(settings: embedded.Settings, templates: Iterable[NodeTemplate], clock: Clock | None = None) -> Whole:
    """Start everything, the API first."""
    scratch = None if settings.directory else tempfile.TemporaryDirectory(prefix="muster-pods-")
    try:
        return await _start(settings, templates, clock or SystemClock(), scratch)
    except BaseException:
        if scratch is not None:
            scratch.cleanup()
        raise


async def _start(
    settings: embedded.Settings,
    templates: Iterable[NodeTemplate],
    clock: Clock,
    scratch: tempfile.TemporaryDirectory[str] | None,
) -> Whole:
    root = settings.directory / "pods" if settings.directory else Path(scratch.name if scratch else "")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    api = await embedded.start(settings)
    controllers = start_controllers(api.access, clock)
    nodes = start_nodes(api.access, templates, clock, root=root)
    api.listening.server.logs = lambda pod, query: _log(api, nodes, pod, query)
    return Whole(api, controllers, nodes, scratch)


async def _log(api: embedded.Embedded, nodes: Nodes, pod: Object, query: LogQuery) -> AsyncIterator[bytes]:
    """The output of a container; simulated ones say nothing."""
    node = _node(api, pod["spec"].get("nodeName", ""))
    if ((node or {}).get("metadata", {}).get("labels") or {}).get(KIND) != PROCESS:
        return
    lines = nodes.processes.logs(
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        query.container,
        follow=query.follow,
        tail=query.tail,
        since=_since(query, nodes.clock),
        previous=query.previous,
        timestamps=query.timestamps,
    )
    async for line in lines:
        yield line


def _node(api: embedded.Embedded, name: str) -> Object | None:
    try:
        return api.access.get("nodes", None, name)
    except ApiError:
        return None


def _since(query: LogQuery, clock: Clock) -> float | None:
    if query.since_time:
        return datetime.fromisoformat(query.since_time).timestamp()
    return clock.now() - query.since_seconds if query.since_seconds else None
