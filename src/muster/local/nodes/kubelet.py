"""What the two kinds of node have in common: the part of a kubelet that does not care how containers run."""

from __future__ import annotations

from typing import Protocol

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError


class Kubelet(Protocol):
    """Runs the pods of all nodes of one kind."""

    def adopt(self, node: Object) -> None:
        """A node of this kind is there and alive."""
        ...

    def fail(self, node: str) -> None:
        """The machine lost power: nothing of it answers, and what ran on it is no more."""
        ...

    def recover(self, node: str) -> None:
        """The machine is back, with nothing running."""
        ...

    def drop(self, node: str) -> None:
        """The node was deleted."""
        ...

    def pod_seen(self, pod: Object) -> None:
        """A pod bound to one of the nodes is new or changed."""
        ...

    def pod_gone(self, pod: Object) -> None:
        """A pod of one of the nodes is no longer in the API."""
        ...

    async def stop(self) -> None: ...


def restart_delay(restarts: int) -> float:
    """How long a container waits for its nth restart: not at all, then 10 s, 20 s… up to five minutes."""
    return 0.0 if restarts < 2 else min(300.0, 10.0 * 2 ** min(restarts - 2, 10))


def host_address(node: Object) -> str:
    """Where the node itself can be reached."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(a["address"]) for a in addresses if a["type"] == "InternalIP"), "127.0.0.1")


def current(access: Access, pod: Object) -> Object | None:
    """The pod as it is now, unless it is gone or another one took its name."""
    metadata = pod["metadata"]
    try:
        found = access.get("pods", metadata["namespace"], metadata["name"])
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    return found if found["metadata"]["uid"] == metadata["uid"] else None


def report(access: Access, pod: Object, status: Object) -> None:
    """Write what the node knows about a pod; a pod that is gone needs no status."""
    metadata = pod["metadata"]
    try:
        access.patch("pods", metadata["namespace"], metadata["name"], {"status": status}, "status")
    except ApiError as error:
        if error.code != 404:
            raise


def release(access: Access, pod: Object) -> None:
    """Let go of a pod whose containers have stopped: it leaves the API, unless a finalizer holds it."""
    metadata = pod["metadata"]
    try:
        access.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"], grace=0)
    except ApiError as error:
        if error.code not in (404, 409):
            raise
