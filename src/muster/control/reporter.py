"""Telling people: conditions of pending pods, the status of group objects, events. Never on the binding path.

What there is to say of a gang is worked out when it is said, at most once in a while per gang, and written only
where it differs from what is there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster.control.sender import MANAGER, send
from muster.dialects.cluster import Key
from muster.dialects.reading import Member, Reading
from muster.dialects.verbs import Verb, Words, time_text
from muster.kube.errors import ApiError, KubeError
from muster.kube.events import Events, Note, Subject
from muster.kube.paths import PODS
from muster.kube.requests import Client, PatchForm
from muster.objects.pods import Pod

log = logging.getLogger("muster.control")

PAUSE = 0.1
"""Seconds between two rounds of writing: what changes meanwhile is written once."""
AT_ONCE = 16
TOLD = 32
UNSCHEDULABLE = "Unschedulable"


class View(Protocol):
    """What the reporter asks of the scheduler."""

    def reading(self, key: Key) -> Reading | None:
        """A gang as it was when it was last planned."""

    def reason(self, key: Key) -> str:
        """Why a waiting gang waits."""

    def report(self, reading: Reading, words: Words) -> tuple[Verb, ...]:
        """What is out of date on its group object."""

    def pod(self, uid: str) -> Pod | None:
        """A pod as the API tells it."""


@dataclass(slots=True)
class Reporter:
    client: Client
    events: Events
    clock: Callable[[], float]
    view: View = field(init=False)
    due: dict[Key, None] = field(default_factory=dict)
    posts: list[Verb] = field(default_factory=list)
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    said: dict[Key, Words] = field(default_factory=dict)

    def look_at(self, keys: Iterable[Key]) -> None:
        """Something about these gangs changed."""
        for key in keys:
            self.due[key] = None
        if self.due:
            self.turn.set()

    def post(self, verb: Verb) -> None:
        """Send a verb soon, in order."""
        self.posts.append(verb)
        self.turn.set()

    async def run(self) -> None:
        """Write what is due until cancelled."""
        while True:
            await self.turn.wait()
            self.turn.clear()
            posts, self.posts = self.posts, []
            for verb in posts:
                await self._send(verb)
            due, self.due = list(self.due), {}
            gate = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(self._write(key, gate) for key in due))
            await asyncio.sleep(PAUSE)

    async def _write(self, key: Key, gate: asyncio.Semaphore) -> None:
        reading = self.view.reading(key)
        if reading is None:
            self.said.pop(key, None)
            return
        words = self._words(reading)
        async with gate:
            for verb in self.view.report(reading, words):
                await self._send(verb)
        if words.message and reading.stage == "waiting":
            waiting = [each for each in reading.members if each.state == "waiting"]
            await asyncio.gather(*(self._mark(reading, member, words, gate) for member in waiting))
            if self.said.get(key) != words:
                self._tell(reading, waiting, words)
        self.said[key] = words

    def _words(self, reading: Reading) -> Words:
        if reading.refused is not None:
            return Words("Refused", str(reading.refused))
        if reading.hold is not None:
            return Words(reading.hold.reason, reading.hold.message)
        if reading.stage != "waiting":
            return Words()
        reason = self.view.reason(reading.key)
        return Words(UNSCHEDULABLE, reason) if reason else Words()

    async def _mark(self, reading: Reading, member: Member, words: Words, gate: asyncio.Semaphore) -> None:
        """PodScheduled=False with the gang's reason: what autoscalers and people read."""
        pod = self.view.pod(member.uid)
        if pod is None or pod.spec.node_name or _says(pod, words.message):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": UNSCHEDULABLE,
            "message": words.message,
            "lastTransitionTime": time_text(self.clock()),
        }
        body: dict[str, Any] = {"metadata": {"uid": member.uid}, "status": {"conditions": [condition]}}
        path = PODS.path(reading.terms.namespace, member.name, "status")
        async with gate:
            await self._try(self.client.patch(path, body, PatchForm.STRATEGIC, field_manager=MANAGER), member.name)

    def _tell(self, reading: Reading, waiting: list[Member], words: Words) -> None:
        """An event on the gang's object and on the first few members: the conditions of the others say the same."""
        for member in waiting[:TOLD]:
            pod = Subject("v1", "Pod", reading.terms.namespace, member.name, member.uid)
            self.events.tell(Note(pod, "FailedScheduling", "Scheduling", words.message, warning=True))
        anchor = reading.terms.anchor
        if anchor is None or anchor.kind == "Pod":
            return
        version = f"{anchor.group}/v1" if anchor.group else "v1"
        subject = Subject(version, anchor.kind, anchor.namespace, anchor.name, anchor.uid)
        self.events.tell(Note(subject, words.reason or "Waiting", "Scheduling", words.message, warning=True))

    async def _send(self, verb: Verb) -> None:
        await self._try(send(self.client, verb), verb.name)

    async def _try(self, call: Awaitable[object], name: str) -> None:
        try:
            await call
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.is_missing):
                log.info("%s: %s", name, error)


def _says(pod: Pod, message: str) -> bool:
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.message == message
        for each in pod.status.conditions
    )
