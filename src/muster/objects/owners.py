"""Metadata every Kubernetes object carries, and who owns it.

Which gang a pod belongs to is mostly answered here: by labels and annotations, or by following controllers
up.
"""

from datetime import UTC, datetime

from muster.objects.decode import Decoded, ObjectError


class OwnerReference(Decoded, frozen=True):
    """One owner of an object; at most one of them is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group without the version; empty for the core group."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


class ObjectMeta(Decoded, frozen=True):
    """Name, identity, labels and owners of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object, if it has one."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def seconds(timestamp: str) -> float:
    """Seconds since 1970 of a Kubernetes timestamp such as `2026-08-20T15:28:25Z`."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise ObjectError(f"time '{timestamp}': must look like 2026-08-20T15:28:25Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
