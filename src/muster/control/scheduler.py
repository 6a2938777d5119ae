"""The loop: wait for news, bring the brain up to date, plan, act. One at a time; acting itself never waits."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.control.binder import Binder
from muster.control.facts import Facts, Where, seats_of
from muster.control.nodes import read_node
from muster.control.reporter import Reporter
from muster.control.seating import Seat, assign
from muster.control.world import World, occupant
from muster.dialects import acts
from muster.dialects.cluster import Key
from muster.dialects.reading import Reading
from muster.dialects.verbs import Verb
from muster.kube.cache import Change
from muster.kube.requests import Client
from muster.model.gang import Seats
from muster.model.topology import Topology
from muster.objects.decode import ObjectError
from muster.objects.nodes import Node
from muster.plan.actions import Bind, Plan, Reserve, Stop
from muster.plan.cycle import cycle
from muster.plan.policy import Policy
from muster.plan.state import State

log = logging.getLogger("muster.control")

GATHER = 0.005
"""Seconds to let a burst of events arrive before planning: a controller makes the pods of a gang one by one."""

TELL_AFTER = 0.5
"""Seconds of quiet after which gangs that wait are told again why: the reason may be another since the last plan."""


@dataclass(slots=True)
class Scheduler:
    client: Client
    world: World
    topology: Topology
    policy: Policy
    binder: Binder
    reporter: Reporter
    clock: Callable[[], float] = time.time
    state: State = field(init=False)
    facts: Facts = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    stale_nodes: set[str] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    readings: dict[Key, Reading] = field(default_factory=dict)
    cycles: int = 0

    def __post_init__(self) -> None:
        self.state = State([], self.topology, self.policy)
        self.facts = Facts(self.state)

    # News

    def node_changed(self, change: Change[Node]) -> None:
        node = change.new or change.old
        assert node is not None
        name = node.metadata.name
        if change.kind.name == "DELETED":
            self.nodes.pop(name, None)
        else:
            old = self.nodes.get(name)
            self.nodes[name] = node
            if old is not None and _same_to_us(old, node):
                return
        self.stale_nodes.add(name)
        self.news.set()

    def settled(self, seat: Seat, node: str) -> None:
        """A bind is over. What did not work is planned again from what is true now."""
        if node != seat.node:
            self.world.assume(seat.uid, node)
            self.news.set()

    # The loop

    async def run(self) -> None:
        """Plan for as long as we lead."""
        self.resync()
        while True:
            self.step()
            await self._wait()
            await asyncio.sleep(GATHER)

    async def _wait(self) -> None:
        """For news, or a moment at which time alone changes the plan; meanwhile tell what the last plan changed."""
        if not await self._news_within(TELL_AFTER):
            self.reporter.look_at(self.facts.waiting)
            await self._news_within(None)
        self.news.clear()

    async def _news_within(self, seconds: float | None) -> bool:
        wake = self.state.wake_at(self.clock())
        until_wake = None if wake is None else max(wake - self.clock(), 0.0)
        waits = [each for each in (seconds, until_wake) if each is not None]
        try:
            async with asyncio.timeout(min(waits, default=None)):
                await self.news.wait()
        except TimeoutError:
            return seconds is None or (until_wake is not None and until_wake <= seconds)
        return True

    def resync(self) -> None:
        """Look at everything again, as a new leader does."""
        self.state = State([], self.topology, self.policy)
        self.facts = Facts(self.state)
        self.readings.clear()
        self.stale_nodes = set(self.nodes)
        self.world.changed = {*self.world.members, *self.world.owners, *self.world.groups}
        self.world.moved = set(self.world.occupants)

    def step(self) -> None:
        """One round: everything that changed, one plan, and off with it."""
        now = self.clock()
        self._nodes()
        self._occupants(now)
        touched = self._gangs(now)
        plan, _ = cycle(self.state, now)
        self.cycles += 1
        self._act(plan)
        self.reporter.look_at(touched)

    def _nodes(self) -> None:
        if not self.stale_nodes:
            return
        names, self.stale_nodes = self.stale_nodes, set()
        known = self.state.ledger.index
        if any((name in known) != (name in self.nodes) for name in names):
            self.state.set_nodes([read_node(node) for node in self.nodes.values()])
            self.world.changed.update(self.facts.running)
            self.world.moved.update(self.world.occupants)
            return
        for name in names & self.nodes.keys():
            self.state.update_node(read_node(self.nodes[name]))

    def _occupants(self, now: float) -> None:
        for uid in self.world.take_moved():
            name = f"occupant/{uid}"
            if name in self.state.running:
                self.state.finish(name, now)
            pod = self.world.occupants.get(uid)
            if pod is not None and pod.spec.node_name in self.state.ledger.index:
                self.state.adopt(occupant(pod))

    def _gangs(self, now: float) -> set[Key]:
        changed = self.world.take_changed()
        for key in sorted(changed):
            try:
                reading = self.world.read(key)
            except ObjectError as error:
                log.warning("%s: %s", key, error)
                continue
            if reading is None:
                self.readings.pop(key, None)
            else:
                self.readings[key] = reading
            self.facts.tell(key, reading, now)
            if reading is not None and reading.running is not None:
                self._seat_latecomers(key, reading)
        return changed

    def _seat_latecomers(self, key: Key, reading: Reading) -> None:
        """Seats were held for members that did not exist when their gang started. Some do now."""
        uid = self.facts.running.get(key)
        if uid is None or reading.running is None or not any(each.state == "waiting" for each in reading.members):
            return
        spare = self.facts.believed(self.state.running[uid]) - seats_of(reading.running.seats) - _ending(reading)
        seats = tuple(Seats(role, (node,), (count,)) for (role, node), count in sorted(spare.items()))
        self._bind(assign(reading, seats))

    # Acts

    def _act(self, plan: Plan) -> None:
        for action in plan.actions:
            key = self.facts.keys.get(action.gang.uid)
            reading = self._reading(key) if key is not None else None
            if key is None or reading is None:
                continue
            if isinstance(action, Bind):
                self.facts.started(key)
                self._bind(assign(reading, action.seats))
            elif isinstance(action, Stop):
                self._send(acts.stop(reading, self.world.view(), action.why))
            else:
                self._remember(reading, action)

    def _reading(self, key: Key) -> Reading | None:
        """The gang as it is now, members that were given a seat a moment ago included."""
        if key in self.world.changed:
            return self.world.read(key)
        return self.readings.get(key)

    def _bind(self, seats: list[Seat]) -> None:
        for seat in seats:
            self.world.assume(seat.uid, seat.node)
        self.binder.bind(seats)

    def _remember(self, reading: Reading, action: Reserve) -> None:
        self._send(acts.remember(reading, self.world.view(), action.reservation))

    def _send(self, verbs: tuple[Verb, ...]) -> None:
        for verb in verbs:
            self.reporter.post(verb)


def _ending(reading: Reading) -> Where:
    """Seats whose last member has not left its node yet: the node would refuse the next."""
    return Counter((each.role, each.node) for each in reading.members if each.state == "ending" and each.node)


def _same_to_us(old: Node, new: Node) -> bool:
    """Heartbeats change nodes all the time, and nothing that matters here."""
    return read_node(old) == read_node(new)
