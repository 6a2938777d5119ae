"""The kubelet of process nodes: pods bound to them become processes of this machine."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from muster.local.api.access import Access, Object
from muster.local.api.errors import ApiError
from muster.local.clock import Clock
from muster.local.nodes.addresses import Addresses
from muster.local.nodes.kubelet import host_address
from muster.local.nodes.process import devices, hosts
from muster.local.nodes.process.container import Place, log_path
from muster.local.nodes.process.environment import Facts
from muster.local.nodes.process.logs import Log
from muster.local.nodes.process.loopback import reserve_network
from muster.local.nodes.process.podrun import PodRun
from muster.local.nodes.process.processes import end_recorded
from muster.local.nodes.process.site import Machine, Site

_STOP_GRACE = 2.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ProcessKubelet:
    """Runs pods as processes and keeps their names resolving."""

    access: Access
    clock: Clock
    root: Path
    site: Site = field(init=False)
    _machines: dict[str, Machine] = field(default_factory=dict)
    _runs: dict[str, PodRun] = field(default_factory=dict)
    _pods: dict[str, Object] = field(default_factory=dict)
    _addresses: Addresses = field(default_factory=lambda: Addresses(IPv4Network("127.64.0.0/16")))
    _claim: socket.socket | None = None
    _services: asyncio.Task[None] | None = None
    _stale_names: bool = False

    def adopt(self, node: Object) -> None:
        name, status = node["metadata"]["name"], node.get("status") or {}
        if not self._services:
            self._open()
        allocatable = status.get("allocatable") or {}
        gpus = devices.Devices(int(allocatable.get(devices.GPU, 0)))
        self._machines[name] = Machine(name, host_address(node), allocatable, gpus)

    def fail(self, node: str) -> None:
        self._machines[node].alive = False
        for run in self._on(node):
            self._vanish(run)

    def recover(self, node: str) -> None:
        self._machines[node].alive = True
        for pod in [pod for pod in self._pods.values() if pod["spec"]["nodeName"] == node]:
            self.pod_seen(pod)

    def drop(self, node: str) -> None:
        for run in self._on(node):
            self._vanish(run)
            run.clean_up()
        self._pods = {uid: pod for uid, pod in self._pods.items() if pod["spec"]["nodeName"] != node}
        self._machines.pop(node, None)

    def pod_seen(self, pod: Object) -> None:
        metadata = pod["metadata"]
        uid, machine = metadata["uid"], self._machines[pod["spec"]["nodeName"]]
        self._pods[uid] = pod
        self._names_changed()
        run = self._runs.get(uid)
        going = "deletionTimestamp" in metadata
        if run is None and machine.alive and (going or not _ended(pod)):
            run = self._begin(pod, machine)
        if run and going:
            run.stop(float(metadata.get("deletionGracePeriodSeconds") or 0))

    def pod_gone(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        self._pods.pop(uid, None)
        self._names_changed()
        run = self._runs.pop(uid, None)
        if run:
            run.stop(0)
            self._later(self._bury(run))
        else:
            shutil.rmtree(self.site.pods / uid, ignore_errors=True)

    async def stop(self) -> None:
        """End every process; what the API says of their pods stays, so that they run again next time."""
        if self._services:
            self._services.cancel()
            await asyncio.gather(self._services, return_exceptions=True)
        await asyncio.gather(*(run.close(_STOP_GRACE) for run in self._runs.values()))
        if self._claim:
            self._claim.close()
            await asyncio.gather(*self.site.loose, return_exceptions=True)

    def logs(
        self,
        namespace: str,
        pod: str,
        container: str = "",
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        previous: bool = False,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """What a container printed, line by line; ApiError says what is wrong with the question."""
        found = self.access.get("pods", namespace, pod)
        name = _which(found, container)
        status = _status_of(found, name)
        number = int(status.get("restartCount", 0)) - previous
        if number < 0:
            message = f'previous terminated container "{name}" in pod "{pod}" not found'
            raise ApiError(400, "BadRequest", message)
        run = self._runs.get(found["metadata"]["uid"])
        live = next((c.log for c in run.containers if c.name == name), None) if run else None
        if live is None or previous:
            live = Log(log_path(self.site.pods / found["metadata"]["uid"] / name, number), self.clock, closed=True)
        return live.read(follow=follow, tail=tail, since=since, timestamps=timestamps)

    async def execute(self, namespace: str, pod: str, container: str, command: list[str]) -> tuple[int, str]:
        """Run a command in a running container, as `kubectl exec` does; its exit code and output."""
        found = self.access.get("pods", namespace, pod)
        name, run = _which(found, container), self._runs.get(found["metadata"]["uid"])
        inside = next((c for c in run.containers if c.name == name and c.running), None) if run else None
        if inside is None:
            raise ApiError(400, "BadRequest", f'container "{name}" of pod "{pod}" is not running')
        return await inside.execute(command)

    def _open(self) -> None:
        """The first process node: see what the machine allows, and end what an earlier run left behind."""
        self.site = Site(self.access, self.clock, self.root)
        killed = end_recorded(self.site.sessions)
        if killed:
            _log.warning("ended %d processes an earlier run of the cluster left behind", killed)
        known = {pod["metadata"]["uid"] for pod in self.access.list("pods")}
        for folder in self.site.pods.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
        why = self.site.try_isolation()
        self.site.isolates = not why
        if why:
            _log.warning("pods get no names and mounts of their own on this machine: %s", why)
        network, self._claim = reserve_network()
        self._addresses = Addresses(IPv4Network(network))
        self._services = asyncio.create_task(self._follow_services())

    async def _follow_services(self) -> None:
        async for _ in self.access.watch(["services"]):
            self._names_changed()

    def _begin(self, pod: Object, machine: Machine) -> PodRun:
        address = self._addresses.take()
        facts = Facts(address, machine.host, machine.allocatable)
        folder = self.site.pods / pod["metadata"]["uid"]
        folder.mkdir(exist_ok=True, mode=0o700)
        place = Place(self.site, machine, pod, folder, facts, hosts.hostname(pod))
        _announce(place)
        run = PodRun(place, self._names_changed)
        self._runs[pod["metadata"]["uid"]] = run
        self._write_names([run])
        run.start()
        return run

    def _on(self, node: str) -> list[PodRun]:
        return [run for run in self._runs.values() if run.place.machine.name == node]

    def _vanish(self, run: PodRun) -> None:
        self._runs.pop(run.place.uid, None)
        run.vanish()
        self._give_back(run)
        self._later(run.ended())

    async def _bury(self, run: PodRun) -> None:
        await run.ended()
        self._give_back(run)
        run.clean_up()

    def _give_back(self, run: PodRun) -> None:
        self._addresses.give(run.place.facts.pod_ip)
        for container in run.containers:
            run.place.machine.devices.give(f"{run.place.uid}/{container.name}")

    def _later(self, work: Coroutine[None, None, None]) -> None:
        self.site.keep(asyncio.create_task(work))

    def _names_changed(self) -> None:
        """Write the names once for all that changes now."""
        if not self._stale_names:
            self._stale_names = True
            asyncio.get_running_loop().call_soon(self._refresh_names)

    def _refresh_names(self) -> None:
        self._stale_names = False
        self._write_names(list(self._runs.values()))

    def _write_names(self, runs: list[PodRun]) -> None:
        known = hosts.names(self._pods.values(), self.access.list("services"))
        for run in runs:
            text = hosts.hosts_file(run.place.pod, run.place.facts.pod_ip, known)
            hosts.rewrite(run.place.folder / "hosts", text)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _announce(place: Place) -> None:
    images = sorted({c.get("image", "") for c in place.pod["spec"]["containers"]} - {""})
    for image in images:
        text = f'Image "{image}" is not used: on this node the command runs as a process of the machine'
        place.say("ImageIgnored", text)
    if not place.site.isolates:
        text = "This machine gives processes no private names and mounts: pod host names do not resolve here"
        place.say("NotIsolated", text, "Warning")


def _which(pod: Object, container: str) -> str:
    names = [c["name"] for c in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]]
    name = container or names[0]
    if name not in names:
        raise ApiError(400, "BadRequest", f"container {name} is not valid for pod {pod['metadata']['name']}")
    return str(name)


def _status_of(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    every = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    found = next((s for s in every if s["name"] == container), None)
    waiting = ((found or {}).get("state") or {}).get("waiting")
    if found is None or (waiting and not found.get("restartCount")):
        reason = (waiting or {}).get("reason", "ContainerCreating")
        name = pod["metadata"]["name"]
        message = f'container "{container}" in pod "{name}" is waiting to start: {reason}'
        raise ApiError(400, "BadRequest", message)
    return dict(found)
