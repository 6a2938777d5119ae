"""Carry out what controllers decided: the only module of theirs that writes to the API.

Actions of one sync are done in order, and the first refusal ends it; what was done is in the mirror at
once, so the retry continues from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.controllers import fields as f
from muster.local.controllers.actions import (
    Action,
    Create,
    CreatePods,
    Delete,
    DeletePods,
    Event,
    Finalize,
    Patch,
    Wake,
)
from muster.local.controllers.mirror import Mirror
from muster.local.events import Recorder


class RefusedError(Exception):
    """The API said no to an action; the key is to be tried again, later each time."""


@dataclass(slots=True)
class Actor:
    """Does actions in the name of one controller."""

    access: Access
    mirror: Mirror
    recorder: Recorder

    def act(self, actions: Iterable[Action]) -> float | None:
        """Do them; the earliest time at which one of them wants the key looked at again."""
        wake: float | None = None
        for action in actions:
            if isinstance(action, Wake):
                wake = action.at if wake is None else min(wake, action.at)
            else:
                self._do(action)
        return wake

    def _do(self, action: Action) -> None:
        match action:
            case Event(about, reason, message, kind):
                self.recorder.say(about, reason, message, kind)
            case Create(resource, obj):
                self._create(resource, obj)
            case CreatePods(owner, pods):
                self._create_pods(owner, pods)
            case DeletePods(owner, pods):
                for pod in pods:
                    self._delete("pods", pod, None, "Background")
                    self.recorder.say(owner, "SuccessfulDelete", f"Deleted pod: {f.name(pod)}")
            case Patch(resource, target, merge, subresource):
                self._patch(resource, target, merge, subresource)
            case Delete(resource, target, grace, propagation):
                self._delete(resource, target, grace, propagation)
            case Finalize(namespace):
                self._finalize(namespace)

    def _create(self, resource: str, obj: Object) -> Object:
        try:
            made = self.access.create(resource, _own(obj), f.namespace(obj) or None)
        except ApiError as error:
            raise RefusedError(error.message) from error
        self.mirror.seen(resource, made)
        return made

    def _create_pods(self, owner: Object, pods: list[Object]) -> None:
        done, batch = 0, 1
        while done < len(pods):
            refusals = []
            for pod in pods[done : done + batch]:
                try:
                    made = self._create("pods", pod)
                    self.recorder.say(owner, "SuccessfulCreate", f"Created pod: {f.name(made)}")
                except RefusedError as error:
                    refusals.append(str(error))
                    self.recorder.say(owner, "FailedCreate", f"Error creating: {error}", "Warning")
            if refusals:
                raise RefusedError(refusals[0])
            done, batch = done + batch, batch * 2

    def _patch(self, resource: str, target: Object, merge: Object, subresource: str) -> None:
        guarded = {**merge, "metadata": {**(merge.get("metadata") or {}), **_guards(resource, target, subresource)}}
        try:
            place = f.namespace(target) or None, f.name(target)
            changed = self.access.patch(resource, *place, guarded, subresource)
        except ApiError as error:
            if error.code == 404:
                return
            raise RefusedError(error.message) from error
        if f.going(changed) and not f.meta(changed).get("finalizers") and not _lingers(resource, changed):
            self.mirror.removing(resource, changed)
        else:
            self.mirror.seen(resource, changed)

    def _delete(self, resource: str, target: Object, grace: int | None, propagation: str) -> None:
        place = f.namespace(target) or None, f.name(target)
        try:
            left = self.access.delete(resource, *place, uid=f.uid(target), grace=grace, propagation=propagation)
        except ApiError as error:
            if error.code == 404:
                return
            raise RefusedError(error.message) from error
        if "metadata" in left and f.going(left):
            self.mirror.seen(resource, left)
        else:
            self.mirror.removing(resource, target)

    def _finalize(self, namespace: Object) -> None:
        bare = {**namespace, "spec": {**f.spec(namespace), "finalizers": []}}
        try:
            self.access.update("namespaces", bare, "finalize")
        except ApiError as error:
            if error.code != 404:
                raise RefusedError(error.message) from error


def _guards(resource: str, target: Object, subresource: str) -> Object:
    """What must still be true for a patch to be right: the same object and, where others write too, the same
    version.

    The conditions of a pod and the taints of a node are lists that their node and users change as well.
    """
    shared = resource == "nodes" or (resource == "pods" and subresource)
    version = {"resourceVersion": f.meta(target).get("resourceVersion")} if shared else {}
    return {"uid": f.uid(target), **version}


def _lingers(resource: str, obj: Object) -> bool:
    """A pod waits for its node while its grace period lasts, and a namespace for finalizers of its own."""
    if resource == "namespaces":
        return bool(f.spec(obj).get("finalizers"))
    return resource == "pods" and (f.meta(obj).get("deletionGracePeriodSeconds") or 0) > 0


def _own(obj: Object) -> Object:
    """A copy that shares nothing with the template it came from."""
    copied: Object = json.loads(json.dumps(obj))
    return copied
