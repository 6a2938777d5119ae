"""Events: what controllers and nodes tell the people who run `kubectl describe`.

Told as Kubernetes tells them: the same thing said again raises a count, and who talks too much about one
object is not heard for a while. An event is never worth failing for.
"""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from dataclasses import dataclass, field

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock, stamp

_REMEMBERED = 4096
_BURST = 25.0
_PER_SECOND = 1 / 300

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Heard:
    namespace: str
    name: str
    count: int


@dataclass(slots=True)
class Recorder:
    """Tells events in the name of one component."""

    access: Access
    clock: Clock
    component: str
    host: str = ""
    _heard: OrderedDict[tuple[str, str, str, str], _Heard] = field(default_factory=OrderedDict)
    _tokens: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def say(self, about: Object, reason: str, message: str, kind: str = "Normal") -> None:
        uid = about["metadata"].get("uid") or ""
        if not self._may_speak(uid):
            return
        said = (uid, kind, reason, message)
        heard = self._heard.get(said)
        try:
            if heard is None or not self._again(heard):
                self._remember(said, self._first(about, reason, message, kind))
        except ApiError as error:
            _log.debug("event %s about %s was not stored: %s", reason, about["metadata"].get("name"), error)

    def _may_speak(self, uid: str) -> bool:
        now = self.clock.now()
        tokens, at = self._tokens.pop(uid, (_BURST, now))
        tokens = min(_BURST, tokens + (now - at) * _PER_SECOND)
        self._tokens[uid] = (tokens - 1, now) if tokens >= 1 else (tokens, now)
        if len(self._tokens) > _REMEMBERED:
            self._tokens.popitem(last=False)
        return tokens >= 1

    def _again(self, heard: _Heard) -> bool:
        merge = {"count": heard.count + 1, "lastTimestamp": stamp(self.clock.now())}
        try:
            self.access.patch("events", heard.namespace, heard.name, merge)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        heard.count += 1
        return True

    def _first(self, about: Object, reason: str, message: str, kind: str) -> _Heard:
        metadata, now = about["metadata"], self.clock.now()
        namespace = metadata.get("namespace") or "default"
        name = f"{metadata['name']}.{int(now * 1e6):x}{next(self._number):04x}"
        involved = {key: metadata.get(key) for key in ("namespace", "name", "uid", "resourceVersion")}
        involved |= {"kind": about.get("kind"), "apiVersion": about.get("apiVersion")}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": reason,
            "message": message[:1024],
            "type": kind,
            "count": 1,
            "firstTimestamp": stamp(now),
            "lastTimestamp": stamp(now),
            "source": {"component": self.component, **({"host": self.host} if self.host else {})},
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        }
        self.access.create("events", event, namespace)
        return _Heard(namespace, name, 1)

    def _remember(self, said: tuple[str, str, str, str], heard: _Heard) -> None:
        self._heard[said] = heard
        self._heard.move_to_end(said)
        if len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)
