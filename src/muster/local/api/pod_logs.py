"""`kubectl logs`: the lines a node agent kept of a container, as they were or as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from muster.local.api.cluster import Cluster
from muster.local.api.errors import bad_request, invalid, invalid_value
from muster.local.api.requests import Target, parse_bool, parse_int

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a container's log are wanted."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    limit_bytes: int | None = None


LogReader = Callable[[Object, LogQuery], AsyncIterator[bytes]]


def query(pod: Object, params: Mapping[str, str]) -> LogQuery:
    """The log options of a request, checked against the pod. Raises ApiError."""
    name = pod["metadata"]["name"]
    containers = [c["name"] for c in pod["spec"]["containers"]]
    initial = [c["name"] for c in pod["spec"].get("initContainers") or ()]
    container = params.get("container", "")
    if not container:
        if len(containers) > 1:
            words = f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]"
            raise bad_request(words)
        container = containers[0]
    elif container not in containers and container not in initial:
        raise bad_request(f"container {container} is not valid for pod {name}")
    return LogQuery(
        container,
        parse_bool(params.get("follow", "")),
        parse_bool(params.get("previous", "")),
        parse_bool(params.get("timestamps", "")),
        _number(params, "tailLines", least=0),
        _number(params, "sinceSeconds", least=1),
        params.get("sinceTime", ""),
        _number(params, "limitBytes", least=1),
    )


def _number(params: Mapping[str, str], name: str, least: int) -> int | None:
    if name not in params:
        return None
    number = parse_int(params[name], name)
    if number < least:
        words = f"must be greater than or equal to {least}"
        raise invalid("", "PodLogOptions", "", [invalid_value(name, number, words)])
    return number


async def answer(
    cluster: Cluster,
    reader: LogReader | None,
    target: Target,
    params: Mapping[str, str],
    request: web.BaseRequest,
) -> web.StreamResponse:
    """Stream a container's log."""
    pod = cluster.record(target.resource, target.namespace, target.name).obj
    wanted = query(pod, params)
    _check_started(pod, wanted.container)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    left = wanted.limit_bytes
    if reader is not None:
        async for line in reader(pod, wanted):
            piece = line if left is None else line[:left]
            await response.write(piece)
            left = None if left is None else left - len(piece)
            if left == 0:
                break
    await response.write_eof()
    return response


def _check_started(pod: Object, container: str) -> None:
    """The node's refusal while there is nothing to read yet."""
    name = pod["metadata"]["name"]
    status = pod.get("status") or {}
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    state = next((c.get("state") or {} for c in found if c.get("name") == container), {})
    waiting = state.get("waiting")
    if waiting is not None or not state:
        reason = (waiting or {}).get("reason") or "ContainerCreating"
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
