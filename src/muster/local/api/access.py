"""How the cluster's own controllers and nodes reach the API: in process, with the same rules as over HTTP.

Controllers written against this protocol cannot do what a real controller could not: every write passes the
same admission, validation, defaulting and versioning as one that came through a socket. What differs is cost:
no socket and no encoding.

A resource is named "plural" for the core group and "group/plural" for the others: "pods", "batch/jobs",
"scheduling.sigs.k8s.io/podgroups". Objects handed out are the stored ones, shared by everybody: never change
one in place, copy what you change. All calls but `watch` are synchronous, run on the event loop's thread and
are atomic: nothing else happens between a read and a write without an `await` between them. Refusals raise
ApiError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

Object = dict[str, Any]


class Access(Protocol):
    """The API as the cluster's own controllers use it."""

    def get(self, resource: str, namespace: str | None, name: str) -> Object:
        """One object; ApiError 404 when there is none."""
        ...

    def list(self, resource: str, namespace: str | None = None, labels: str = "", fields: str = "") -> list[Object]:
        """Objects in order of namespace and name, of all namespaces when none is given."""
        ...

    def create(self, resource: str, obj: Object, namespace: str | None = None) -> Object:
        """Store a new object and return it as stored (defaulted, with uid and version)."""
        ...

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        """Replace an object; refused with 409 when metadata.resourceVersion is present and stale."""
        ...

    def patch(self, resource: str, namespace: str | None, name: str, merge: Object, subresource: str = "") -> Object:
        """Apply a JSON merge patch (RFC 7396)."""
        ...

    def delete(
        self,
        resource: str,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> Object:
        """Delete, or begin to (finalizers, grace period); `uid` refuses to delete a namesake (409).

        `propagation` is "", "Background", "Foreground" or "Orphan", as in DeleteOptions.
        """
        ...

    def watch(self, resources: Iterable[str]) -> AsyncIterator[tuple[str, str, Object]]:
        """(resource, "ADDED" | "MODIFIED" | "DELETED", object): current objects, then every change in order.

        The snapshot is taken when iteration starts. Each version of an object is seen once, none missing.
        """
        ...

    def evict(self, namespace: str, name: str, grace: int | None = None) -> None:
        """Evict a pod through its disruption budgets; ApiError 429 when a budget refuses now."""
        ...
