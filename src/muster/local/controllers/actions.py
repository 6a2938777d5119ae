"""What a controller can ask for. Controllers return these; `acting` carries them out, in order."""

from __future__ import annotations

from dataclasses import dataclass

from muster.local.api.access import Object


@dataclass(frozen=True, slots=True)
class Event:
    """Something a user should read in `kubectl describe` of `about`."""

    about: Object
    reason: str
    message: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True)
class Create:
    """Make one object, without which what follows makes no sense: a refusal ends the sync and retries it."""

    resource: str
    obj: Object


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Make identical pods for `owner` in batches of 1, 2, 4…: when one is refused, so would the others be."""

    owner: Object
    pods: list[Object]


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Delete pods of `owner`, with an event for each."""

    owner: Object
    pods: list[Object]


@dataclass(frozen=True, slots=True)
class Patch:
    """Apply a JSON merge patch to one object, if it still is the same one."""

    resource: str
    target: Object
    merge: Object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object, if it still is the same one."""

    resource: str
    target: Object
    grace: int | None = None
    propagation: str = ""


@dataclass(frozen=True, slots=True)
class Finalize:
    """Take the last finalizer off a namespace."""

    namespace: Object


@dataclass(frozen=True, slots=True)
class Wake:
    """Look at the same key again at this time, even if nothing happens until then."""

    at: float


Action = Event | Create | CreatePods | DeletePods | Patch | Delete | Finalize | Wake
