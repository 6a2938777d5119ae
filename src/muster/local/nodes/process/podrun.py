"""The life of one pod on this machine: volumes, init containers in order, containers, restarts, and its
end.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from muster.local.api.access import Object
from muster.local.clock import seconds_of
from muster.local.nodes.kubelet import current, release, report, restart_delay
from muster.local.nodes.process.container import Container, Place
from muster.local.nodes.process.environment import ConfigError
from muster.local.nodes.process.status import INIT, MAIN, SIDECAR, State, pod_status, restarts
from muster.local.nodes.process.volumes import Sources, memory_volumes, prepare

_RETRY = 2.0
_LOOK_AGAIN = 0.05
_WELL_AGAIN = 600.0
_LOST = 137

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PodRun:
    """A pod from the moment its node sees it until it lets go of it."""

    place: Place
    finished: Callable[[], None]
    containers: list[Container] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _deadline: float = float("inf")
    _over: str = ""
    _silent: bool = False
    _task: asyncio.Task[None] | None = None
    _reported: Object | None = None

    def start(self) -> None:
        self.containers = [self._container(spec, role) for role, spec in _roles(self.place.pod)]
        self._task = asyncio.create_task(self._live())

    def stop(self, grace: float, why: str = "") -> None:
        """End every container within so many seconds; a shorter time than before counts."""
        deadline = self.place.site.clock.now() + grace
        if deadline >= self._deadline:
            return
        if self._stopping.is_set():
            asyncio.get_running_loop().call_later(max(0.0, grace), self.kill)
        self._deadline = deadline
        self._over = self._over or why
        self._stopping.set()

    def kill(self) -> None:
        for container in self.containers:
            container.kill()

    def vanish(self) -> None:
        """Be gone without a word, as when the power fails."""
        if self._task:
            self._task.cancel()
        self.kill()

    async def close(self, grace: float) -> None:
        """End with the cluster, in order but without a report: the pod is to run again when the cluster
        does.
        """
        stops = [container.stop(self._now() + grace) for container in self.containers]
        self._silent = True
        if stops:
            await asyncio.gather(*stops)
        self.vanish()
        await self.ended()

    async def ended(self) -> None:
        if self._task:
            await asyncio.wait([self._task])

    def clean_up(self) -> None:
        """Remove the pod's files: the API has let go of it."""
        for folder in [*memory_volumes(self.place.pod), self.place.folder]:
            shutil.rmtree(folder, ignore_errors=True)

    def _container(self, spec: Object, role: str) -> Container:
        blank = State(spec["name"], role, spec.get("image", ""), waiting="PodInitializing" if role == MAIN else "")
        blank = replace(blank, waiting=blank.waiting or "ContainerCreating")
        return Container(self.place, spec, _recalled(self.place.pod, blank, self._now()), self._report)

    def _now(self) -> float:
        return self.place.site.clock.now()

    async def _live(self) -> None:
        stopper = asyncio.create_task(self._obey())
        timer = asyncio.create_task(self._expire())
        try:
            await self._try(self._volumes)
            await self._containers()
        finally:
            for task in (stopper, timer):
                task.cancel()
        self._finish()

    async def _containers(self) -> None:
        sidecars = []
        for container in self.containers:
            if container.state.role == SIDECAR:
                sidecars.append(asyncio.create_task(self._keep(container)))
                await self._until_started(container)
            elif container.state.role == INIT:
                await self._keep(container)
                if self._stopping.is_set() or container.state.exit_code:
                    break
        else:
            mains = [self._keep(c) for c in self.containers if c.state.role == MAIN]
            await asyncio.gather(*mains)
        await self._end_sidecars(sidecars)

    async def _end_sidecars(self, tasks: list[asyncio.Task[None]]) -> None:
        self.stop(self.place.grace)
        if tasks:
            await asyncio.wait(tasks)

    async def _until_started(self, container: Container) -> None:
        while not (container.state.started or self._stopping.is_set()):
            await asyncio.sleep(_LOOK_AGAIN)

    async def _volumes(self) -> None:
        namespace, site = self.place.pod["metadata"]["namespace"], self.place.site
        sources = Sources(self.place.pod, self.place.facts, lambda kind, name: site.lookup(namespace, kind, name))
        self.place.volumes = prepare(sources, self.place.folder / "volumes")

    async def _try(self, act: Callable[[], Awaitable[object]], container: Container | None = None) -> None:
        """Do something as soon as the pod's configuration allows it, and say what is missing until then."""
        while not self._stopping.is_set():
            try:
                await act()
            except ConfigError as error:
                self._complain(container, str(error))
            except OSError as error:
                self._complain(container, f"{error.strerror}: {error.filename}")
            else:
                return
            await self._pause(_RETRY)

    def _complain(self, container: Container | None, why: str) -> None:
        if container:
            self.place.say("Failed", f"Error: {why}", "Warning")
            container.state = container.state.wait("CreateContainerConfigError", why)
        else:
            self.place.say("FailedMount", f"MountVolume.SetUp failed: {why}", "Warning")
        self._report()

    async def _keep(self, container: Container) -> None:
        """Run a container as often as its pod's restart policy asks for."""
        policy = self.place.pod["spec"].get("restartPolicy", "Always")
        if container.state.done:
            if not restarts(policy, container.state.role, container.state.exit_code or 0):
                return
            container.state = replace(container.state, restarts=container.state.restarts + 1)
        crashes = container.state.restarts
        while not self._stopping.is_set():
            await self._try(container.run, container)
            code = container.state.exit_code
            if self._stopping.is_set() or code is None or not restarts(policy, container.state.role, code):
                return
            long = container.state.finished - container.state.began > _WELL_AGAIN
            crashes = 1 if long else crashes + 1
            await self._back_off(container, restart_delay(crashes))

    async def _back_off(self, container: Container, delay: float) -> None:
        if delay:
            metadata = self.place.pod["metadata"]
            pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
            message = f"back-off {delay:.0f}s restarting failed container={container.name} pod={pod}"
            container.state = container.state.wait("CrashLoopBackOff", message)
            self.place.say("BackOff", f"Back-off restarting failed container {container.name} in pod {pod}", "Warning")
            self._report()
            await self._pause(delay)
        container.state = replace(container.state, restarts=container.state.restarts + 1)

    async def _pause(self, seconds: float) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([stopping], timeout=seconds)
        stopping.cancel()

    async def _obey(self) -> None:
        """Once asked to stop: the containers first, then the sidecars, all before the deadline."""
        await self._stopping.wait()
        while True:
            running = [c for c in self.containers if c.running]
            first = [c for c in running if c.state.role != SIDECAR] or running
            await asyncio.gather(*(c.stop(self._deadline) for c in first))
            await asyncio.sleep(_LOOK_AGAIN)

    async def _expire(self) -> None:
        seconds = self.place.pod["spec"].get("activeDeadlineSeconds")
        started = seconds_of((self.place.pod.get("status") or {}).get("startTime")) or self._now()
        if seconds is not None:
            await asyncio.sleep(max(0.0, started + seconds - self._now()))
            self.stop(self.place.grace, "DeadlineExceeded")

    def _finish(self) -> None:
        """The last word: what never came to run did not succeed either."""
        message = "The container could not be located when the pod was terminated"
        for container in self.containers:
            if not container.state.done and (self._over or _is_going(self.place)):
                container.state = container.state.exit(_LOST, self._now(), "ContainerStatusUnknown", message)
        self._report(over=True)
        pod = current(self.place.site.access, self.place.pod)
        for container in self.containers:
            self.place.machine.devices.give(f"{self.place.uid}/{container.name}")
        if pod and "deletionTimestamp" in pod["metadata"]:
            release(self.place.site.access, pod)
        self.finished()

    def _report(self, *, over: bool = False) -> None:
        """Write the pod's status if it is news."""
        pod = None if self._silent else current(self.place.site.access, self.place.pod)
        if pod is None:
            return
        states = [container.state for container in self.containers]
        facts = self.place.facts
        status = pod_status(pod, states, facts.pod_ip, facts.host_ip, self._now(), over=over)
        if self._over:
            status |= {"phase": "Failed", "reason": self._over}
        if status != self._reported:
            report(self.place.site.access, pod, status)
            self._reported = status


def _roles(pod: Object) -> list[tuple[str, Object]]:
    inits = pod["spec"].get("initContainers") or ()
    found = [(SIDECAR if spec.get("restartPolicy") == "Always" else INIT, spec) for spec in inits]
    return [*found, *((MAIN, spec) for spec in pod["spec"]["containers"])]


def _recalled(pod: Object, blank: State, now: float) -> State:
    """A container as the API last saw it: what ran then was lost together with the run of the cluster it
    was in.
    """
    status = pod.get("status") or {}
    every = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    seen = next((s for s in every if s["name"] == blank.name), None)
    if seen is None:
        return blank
    state, count = seen.get("state") or {}, seen.get("restartCount", 0)
    known = replace(blank, restarts=count, last=(seen.get("lastState") or {}).get("terminated"))
    if "running" in state:
        began = seconds_of(state["running"].get("startedAt")) or now
        return replace(known, began=began).exit(_LOST, now, "Error", "the node it ran on was restarted")
    if "terminated" in state:
        ended = state["terminated"]
        times = [seconds_of(ended.get(key)) or now for key in ("startedAt", "finishedAt")]
        return replace(known, began=times[0]).exit(ended["exitCode"], times[1], ended.get("reason", ""))
    return known


def _is_going(place: Place) -> bool:
    pod = current(place.site.access, place.pod)
    return pod is None or "deletionTimestamp" in pod["metadata"]
