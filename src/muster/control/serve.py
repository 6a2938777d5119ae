"""A scheduler beside a cluster: feeds, lease, loop, reports; started together, and together given up."""

import asyncio
import logging
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

from muster.control.binder import Binder
from muster.control.reporter import Reporter
from muster.control.scheduler import Scheduler
from muster.control.world import World
from muster.dialects import acts
from muster.dialects.cluster import Item, Key
from muster.dialects.reading import Reading
from muster.dialects.spelling import Served
from muster.dialects.table import KINDS
from muster.dialects.verbs import Verb, Words
from muster.kube.access import Access
from muster.kube.cache import Cache, Change
from muster.kube.election import Election
from muster.kube.events import Events
from muster.kube.feed import Feed, State
from muster.kube.lease import Lease
from muster.kube.paths import NODES, PODS, Resource
from muster.kube.requests import Client
from muster.kube.transport import Transport
from muster.model.topology import Topology
from muster.objects.nodes import Node
from muster.objects.pods import Pod
from muster.plan.explain import Waiting, explain
from muster.plan.policy import Policy, parse

log = logging.getLogger("muster.control")

POLICY = "easy:priority+fifo"
LEASE = 5.0
BINDS_AT_ONCE = 64
BIND_TIMEOUT = 2.0
"""Well below the lease: what is sent is answered or given up before another can lead."""


@dataclass(frozen=True, slots=True)
class Settings:
    schedulers: tuple[str, ...] = ("muster",)
    levels: tuple[str, ...] = ()
    policy: Policy = parse(POLICY)
    lease_namespace: str = "kube-system"
    lease_name: str = "muster"


async def serve(access: Access, settings: Settings) -> None:
    """Schedule until cancelled."""
    transport, apart = Transport(access, limit=BINDS_AT_ONCE), Transport(access, limit=4)
    try:
        async with asyncio.TaskGroup() as group:
            await _serve(group, Client(transport), Client(apart, timeout=1.0), settings)
    finally:
        await transport.close()
        await apart.close()


async def _serve(group: asyncio.TaskGroup, client: Client, apart: Client, settings: Settings) -> None:
    me = f"{socket.gethostname()}-{token_hex(4)}"  # two replicas may share host name and process number
    lease = Lease(apart, settings.lease_namespace, settings.lease_name, Election(me, LEASE))
    events = Events(client, "muster.sh/scheduler", me)
    world = World(frozenset(settings.schedulers))
    scheduler = _scheduler(client, world, lease, events, settings)
    group.create_task(lease.run())
    group.create_task(events.run())
    await _feed(group, client, world, scheduler)
    log.info("the cluster is known: %d nodes, %d pods", len(scheduler.nodes), len(world.pods))
    while True:
        await lease.acquired()
        log.info("leading as %s", me)
        await _lead(scheduler, lease)
        log.info("no longer leading")


def _scheduler(client: Client, world: World, lease: Lease, events: Events, settings: Settings) -> Scheduler:
    reporter = Reporter(client, events, time.time)
    binder = Binder(Client(client.transport, timeout=BIND_TIMEOUT), lambda: lease.valid_until)
    scheduler = Scheduler(client, world, Topology(settings.levels), settings.policy, binder, reporter)
    binder.settled = scheduler.settled
    reporter.view = Windows(scheduler)
    return scheduler


async def _lead(scheduler: Scheduler, lease: Lease) -> None:
    """The loop and the reports, until the lease is lost."""
    tasks = [asyncio.create_task(scheduler.run()), asyncio.create_task(scheduler.reporter.run())]
    lost = asyncio.create_task(lease.lost())
    stopped = True
    try:
        done, _ = await asyncio.wait([*tasks, lost], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {lost}:
            task.result()
        stopped = False
    finally:
        for task in [*tasks, lost]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await (scheduler.binder.close() if stopped else scheduler.binder.idle())


async def _feed(group: asyncio.TaskGroup, client: Client, world: World, scheduler: Scheduler) -> None:
    """Start every watch, and wait until what there is is known."""
    feeds: list[Feed[Pod] | Feed[Node] | Feed[Item]] = [
        _watch_pods(client, world, scheduler),
        _watch_nodes(client, scheduler),
    ]
    feeds += [_watch_kind(client, world, scheduler, served) for served in KINDS]
    for feed in feeds:
        group.create_task(feed.run())
    await asyncio.gather(*(_known(feed) for feed in feeds))


async def _known(feed: "Feed[Pod] | Feed[Node] | Feed[Item]") -> None:
    while not feed.cache.synced.is_set() and feed.health.state is not State.ABSENT:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await feed.cache.synced.wait()


def _watch_pods(client: Client, world: World, scheduler: Scheduler) -> Feed[Pod]:
    cache: Cache[Pod] = Cache()

    def changed(change: Change[Pod]) -> None:
        world.pod(change.old, None if change.kind.name == "DELETED" else change.new)
        scheduler.news.set()

    cache.handlers.append(changed)
    return Feed(client, PODS.path(), Pod, cache)


def _watch_nodes(client: Client, scheduler: Scheduler) -> Feed[Node]:
    cache: Cache[Node] = Cache()
    cache.handlers.append(scheduler.node_changed)
    return Feed(client, NODES.path(), Node, cache)


def _watch_kind(client: Client, world: World, scheduler: Scheduler, served: Served) -> Feed[Item]:
    resource = served.resource
    kind = (resource.group, resource.kind)
    cache: Cache[Item] = Cache()

    def changed(change: Change[Item]) -> None:
        world.object(kind, change.old, None if change.kind.name == "DELETED" else change.new)
        scheduler.news.set()

    cache.handlers.append(changed)
    path = Resource(resource.group, resource.version, resource.plural).path()
    return Feed(client, path, served.type, cache)  # type: ignore[arg-type]


class Windows:
    """What the reporter may see of the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.explained: tuple[int, dict[str, Waiting]] = (-1, {})

    def reading(self, key: Key) -> Reading | None:
        return self.scheduler.readings.get(key)

    def reason(self, key: Key) -> str:
        scheduler = self.scheduler
        if self.explained[0] != scheduler.cycles:
            found = {waiting.uid: waiting for waiting in explain(scheduler.state, scheduler.clock())}
            self.explained = (scheduler.cycles, found)
        gang = scheduler.facts.waiting.get(key)
        waiting = self.explained[1].get(gang.uid) if gang is not None else None
        return waiting.reason if waiting is not None else ""

    def report(self, reading: Reading, words: Words) -> tuple[Verb, ...]:
        return acts.report(reading, self.scheduler.world.view(), words, self.scheduler.clock())

    def pod(self, uid: str) -> Pod | None:
        return self.scheduler.world.pods.get(uid)
