"""The one place where controllers run: a watch feeds the mirror, changes become keys, keys are synced one by
one.

A key waits in the queue once, however often it is named, so a burst of a thousand pod changes is one look
at their Job. A sync never awaits, so nothing changes under it; between syncs the API gets its turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock, Timers
from muster.local.controllers import fields as f
from muster.local.controllers.acting import Actor, RefusedError
from muster.local.controllers.actions import CreatePods, DeletePods
from muster.local.controllers.mirror import Key, Mirror
from muster.local.controllers.table import CUSTOM, WATCHED, Controller, controllers
from muster.local.events import Recorder

_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_SLICE = 0.005
_WORTH_RESTING = 0.005

_log = logging.getLogger(__name__)
Item = tuple[int, Key]


@dataclass(slots=True)
class Running:
    """Controllers at work, until they are stopped."""

    access: Access
    clock: Clock
    table: list[Controller]
    mirror: Mirror = field(default_factory=Mirror)
    _actors: list[Actor] = field(default_factory=list)
    _timers: Timers[Item] = field(init=False)
    _ready: dict[Item, None] = field(default_factory=dict)
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _refused: dict[Item, int] = field(default_factory=dict)
    _wakes: dict[Item, float] = field(default_factory=dict)
    _looked: dict[Item, float] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def start(self) -> Running:
        self._timers = Timers(self.clock, self._due)
        for controller in self.table:
            self._actors.append(
                Actor(self.access, self.mirror, Recorder(self.access, self.clock, controller.component))
            )
        served = [resource for resource in WATCHED if self._prime(resource)]
        self._tasks[""] = asyncio.create_task(self._follow(served))
        self._tasks["work"] = asyncio.create_task(self._work())
        return self

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do until something changes or a timer rings."""
        return not self._ready

    async def stop(self) -> None:
        self._timers.stop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _prime(self, resource: str) -> bool:
        """See all there is before anything is done: an owner must not be seen without its pods."""
        try:
            found = self.access.list(resource)
        except ApiError as error:
            _log.debug("%s is not served here: %s", resource, error)
            return False
        for obj in found:
            self.mirror.seen(resource, obj)
        return True

    async def _follow(self, resources: list[str]) -> None:
        try:
            async for resource, change, obj in self.access.watch(resources):
                self._hear(resource, change, obj)
        except ApiError as error:
            _log.info("stopped watching %s: %s", ", ".join(resources), error)

    def _hear(self, resource: str, change: str, obj: Object) -> None:
        """One object a controller cannot make sense of must not make it deaf to all others."""
        try:
            self._heard(resource, change, obj)
        except Exception:
            _log.exception("%s %s %s/%s", change, resource, f.namespace(obj), f.name(obj))

    def _heard(self, resource: str, change: str, obj: Object) -> None:
        if change == "DELETED":
            self.mirror.removed(resource, obj)
        else:
            self.mirror.seen(resource, obj)
        if resource == CUSTOM:
            self._follow_custom(obj, change)
        if resource == "resourcequotas":
            self._retry(f.namespace(obj))
        for number, controller in enumerate(self.table):
            self._add((number, key) for key in controller.keys(resource, obj, self.mirror))

    def _follow_custom(self, definition: Object, change: str) -> None:
        spec = f.spec(definition)
        resource = f"{spec['group']}/{spec['names']['plural']}"
        task = self._tasks.get(resource)
        if change == "DELETED" and task:
            task.cancel()
            del self._tasks[resource]
        elif change != "DELETED" and task is None and f.is_true(definition, "Established") and self._prime(resource):
            self._tasks[resource] = asyncio.create_task(self._follow([resource]))

    def _retry(self, namespace: str) -> None:
        self._add(item for item in self._refused if item[1][0] == namespace)

    def _add(self, items: Iterable[Item]) -> None:
        for item in items:
            self._ready[item] = None
        if self._ready:
            self._bell.set()

    def _due(self, items: list[Item]) -> None:
        for item in items:
            self._wakes.pop(item, None)
        self._add(items)

    async def _work(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            until = time.monotonic() + _SLICE
            while self._ready and time.monotonic() < until:
                item = next(iter(self._ready))
                del self._ready[item]
                self._sync(item)
            if self._ready:
                self._bell.set()
            await asyncio.sleep(0)

    def _sync(self, item: Item) -> None:
        number, key = item
        controller = self.table[number]
        if self._rests(item, controller.rest(key, self.mirror)):
            return
        try:
            actions = controller.sync(key, self.mirror, self.clock.now())
            if any(isinstance(action, CreatePods | DeletePods) for action in actions):
                self._looked.pop(item, None)  # there may be more to make or delete at once
            wake = self._actors[number].act(actions)
        except RefusedError as error:
            _log.debug("%s %s: %s", controller.name, "/".join(key), error)
            self._again(item)
        except Exception:
            _log.exception("%s %s failed; it will be tried again", controller.name, "/".join(key))
            self._again(item)
        else:
            self._refused.pop(item, None)
            if wake is not None:
                self._wake(item, wake)

    def _rests(self, item: Item, least: float) -> bool:
        """Whether it is too soon to look at a key again; it is looked at as soon as it is not."""
        now, again = self.clock.now(), self._looked.pop(item, 0.0) + least
        if least >= _WORTH_RESTING:
            self._looked[item] = again - least if again > now else now
        if again > now:
            self._wake(item, again)
        return again > now

    def _again(self, item: Item) -> None:
        attempts = self._refused[item] = self._refused.get(item, 0) + 1
        self._wake(item, self.clock.now() + min(_LONGEST_RETRY, _FIRST_RETRY * 2 ** min(attempts - 1, 10)))

    def _wake(self, item: Item, at: float) -> None:
        if self._wakes.get(item, float("inf")) > at:
            self._wakes[item] = at
            self._timers.add(at, item)


def start_controllers(access: Access, clock: Clock) -> Running:
    """Start every controller of the cluster on the running event loop."""
    return Running(access, clock, controllers(access)).start()
