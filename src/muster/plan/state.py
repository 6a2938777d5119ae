"""What the brain knows between cycles, changed by events and by its own plans.

Nothing here outlives a rebuild: every fact is in the objects the state is built from, so that a new leader's
state, built cold, plans as the old one would have. What is kept beyond them are caches.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from muster.model.gang import Gang, Running, Seats
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.asking import Asker
from muster.plan.counted import Counted
from muster.plan.domains import DomainLedger
from muster.plan.explain import explain
from muster.plan.forest import Forest, in_order
from muster.plan.holding import NOWHERE, Holding, expected_end
from muster.plan.ledger import Ledger
from muster.plan.nodewise import Nodewise
from muster.plan.policy import Policy
from muster.plan.room import Part, Present
from muster.plan.rules import Classes
from muster.plan.shapes import Bools, Shape, Shapes
from muster.plan.tenants import Tenants
from muster.plan.waiting import Entry, Queue

if TYPE_CHECKING:
    from muster.plan.pods import Pod


class State:
    """Feed it events, hand it to `cycle`, carry out the plan."""

    def __init__(self, nodes: Iterable[Node], topology: Topology = Topology(), policy: Policy = Policy()) -> None:
        self.policy = policy
        self.topology = topology
        self.queue = Queue(policy)
        self.running: dict[str, Holding] = {}
        self.groups: dict[str, list[Gang]] = {}  # gangs of a group that is not complete yet
        self.fresh: list[Entry] = []
        self.arrivals = 0
        self.room_grew = True
        self.news = True  # something ended otherwise than promised, or the cluster changed: promises may improve
        self.outlook: Counted | Nodewise | None = None
        self.outlook_of: Shape | None = None  # what it was built for
        self.promises: dict[str, Entry] = {}
        self.held: Bools | None = None  # nodes kept free for an aged gang that nobody can promise a time
        self.pods: list[Pod] = []  # used by the policy that binds pods one by one
        self.partial: set[str] = set()
        self.bending: set[str] = set()  # running gangs that could use more members
        self._build(in_order(nodes, topology))

    def _build(self, nodes: Sequence[Node]) -> None:
        self.ledger = Ledger(nodes)
        self.forest = Forest(nodes, self.topology)
        self.classes = Classes(nodes)
        self.shapes = Shapes(self.ledger, self.classes)
        self.tenants = Tenants(self.classes)
        self.present = Present(self.ledger)
        self.domains = DomainLedger(self.forest)
        self.asker = Asker(self)

    # Events about gangs

    def submit(self, gang: Gang) -> None:
        """A gang waits. Gangs of a group join the queue together, once all of them are here."""
        if gang.group:
            members = self.groups.setdefault(gang.group, [])
            members.append(gang)
            if len(members) < gang.group_size:
                return
            gangs = tuple(sorted(self.groups.pop(gang.group), key=lambda g: g.uid))
        else:
            gangs = (gang,)
        self.arrivals += 1
        entry = self.asker.entry(gangs, self.arrivals)
        self.enqueue(entry)
        self.fresh.append(entry)

    def enqueue(self, entry: Entry) -> None:
        self.asker.join(entry)
        if entry.kind.hopeless:
            entry.promised = None
        if entry.promised is not None:
            self.promises[entry.uid] = entry
            self.outlook = None

    def withdraw(self, uid: str) -> None:
        """It does not wait any more: deleted, or stopped by its owner."""
        for gangs in self.groups.values():
            gangs[:] = [gang for gang in gangs if gang.uid != uid]
        entry = next((e for e in self.queue.entries.values() if any(a.gang.uid == uid for a in e.asks)), None)
        if entry is None:
            return
        if entry in self.fresh:
            self.fresh.remove(entry)
        self.leave(entry)
        self._drop_pods(uid)
        if not entry.kind.hopeless:
            self.asker.count(entry, -1)
        self.room_grew = self.news = True

    def _drop_pods(self, uid: str) -> None:
        if self.pods:
            self.pods = [pod for pod in self.pods if pod[-1].uid != uid]

    def leave(self, entry: Entry) -> None:
        """Out of the queue, and its promise with it."""
        self.revoke(entry)
        self.queue.leave(entry)

    def revoke(self, entry: Entry) -> None:
        if entry.promised is not None:
            if self.outlook is not None:
                self.outlook.revoke(entry)
            entry.promised = None
            self.promises.pop(entry.uid, None)

    def expire(self, uid: str, now: float) -> None:
        """Its time is up exactly as expected and its room is back. `finish` follows."""
        holding = self.running[uid]
        self._vacate(holding, now)
        holding.expired = True
        self.room_grew = True

    def finish(self, uid: str, now: float) -> None:
        """It is over, however it ended; whatever it still holds is free."""
        holding = self.running[uid]
        if not holding.expired:
            self._vacate(holding, now)
        del self.running[uid]
        self.partial.discard(uid)
        self.bending.discard(uid)
        self._drop_pods(uid)
        self.asker.count_one(holding.what, -1)
        self.room_grew = self.news = True

    def _vacate(self, holding: Holding, now: float) -> None:
        members = holding.members()
        for part in holding.parts:
            self.present.give(part)
            self.tenants.remove(holding.gang.namespace, holding.gang.roles[part.role], part.nodes, part.counts)
        holding.parts = []
        self.domains.give(holding)
        if self.outlook is not None:
            self.outlook.ended(holding, members, now)

    def lose(self, uid: str, role: int, node: str, count: int, now: float) -> None:
        """Members are gone from a node without having finished; the gang may be partial now."""
        self._drop(self.running[uid], role, node, count)
        holding = self.running[uid]
        if any(holding.missing()) and holding.partial_since is None:
            holding.partial_since = now

    def succeed(self, uid: str, role: int, node: str, count: int) -> None:
        """Members finished: their room is free, and they still count for the quorum."""
        holding = self.running[uid]
        if not holding.succeeded:
            holding.succeeded = [0] * len(holding.gang.roles)
        holding.succeeded[role] += count
        self._drop(holding, role, node, count)

    def _drop(self, holding: Holding, role: int, node: str, count: int) -> None:
        index = self.ledger.index[node]
        for part in holding.parts:
            where = np.flatnonzero(part.nodes == index)
            if part.role != role or not len(where):
                continue
            gone = min(count, int(part.counts[where[0]]))
            lost = Part(role, part.shape, np.array([index]), np.array([gone]), gone)
            self.present.give(lost)
            self.tenants.remove(holding.gang.namespace, holding.gang.roles[role], lost.nodes, lost.counts)
            if self.outlook is not None:
                self.outlook.ended(holding, gone, -inf)
            left = part.counts.copy()
            left[where[0]] -= gone
            part.nodes, part.counts, part.members = part.nodes[left > 0], left[left > 0], part.members - gone
            count -= gone
        holding.parts = [part for part in holding.parts if len(part.nodes)]
        if not holding.parts:
            self.domains.give(holding)
        self.track(holding)
        self.room_grew = self.news = True

    def adopt(self, running: Running) -> None:
        """A gang that was bound before this state was built."""
        gang = running.gang
        plan = self.asker.blueprint(gang)
        what = None if gang.group else plan.plain
        holding = Holding(gang, running.started, expected_end(gang, running.started), [], plan, what)
        holding.succeeded = list(running.succeeded)
        holding.partial_since = running.partial_since
        for seats in running.seats:
            self.seat(holding, self._part(holding, seats))
        self.ledger.audit()
        self.domains.take(holding)
        self.running[gang.uid] = holding
        self.asker.count_one(holding.what, 1)
        self.track(holding)
        self.outlook = None

    def track(self, holding: Holding) -> None:
        """Note what the later steps of a cycle have to look at."""
        if any(holding.missing()):
            self.partial.add(holding.uid)
        if any(role.most > holding.held(i) for i, role in enumerate(holding.gang.roles)):
            self.bending.add(holding.uid)
        else:
            self.bending.discard(holding.uid)

    def _part(self, holding: Holding, seats: Seats) -> Part:
        nodes = np.array([self.ledger.index[name] for name in seats.nodes], dtype=np.int64)
        counts = np.array(seats.counts, dtype=np.int64)
        return Part(seats.role, holding.blueprint.shapes[seats.role], nodes, counts, sum(seats.counts))

    def seat(self, holding: Holding, part: Part) -> None:
        """Members take their nodes in the ledger."""
        self.present.take(part)
        self.tenants.add(holding.gang.namespace, holding.gang.roles[part.role], part.nodes, part.counts)
        holding.parts.append(part)

    # Events about nodes

    def update_node(self, node: Node) -> None:
        """Labels, taints, readiness or capacity of a known node changed; a new or moved one rebuilds the tables."""
        index = self.ledger.index.get(node.name)
        old = None if index is None else self.ledger.nodes[index]
        if index is None or old is None or old.labels != node.labels or set(old.capacity) != set(node.capacity):
            self.set_nodes([*(n for n in self.ledger.nodes if n.name != node.name), node])
            return
        self.ledger.resize(index, node)
        self.classes.update(index, node)
        self.shapes.nodes_changed()
        self._cluster_changed()

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Another set of nodes. Members on nodes that are gone are lost."""
        holdings, self.running = self.running, {}
        names = [node.name for node in self.ledger.nodes]
        entries = sorted(self.queue.entries.values(), key=lambda e: e.number)
        self.queue = Queue(self.policy)
        self.promises = {}
        self.held = None
        self.partial.clear()
        self._build(in_order(nodes, self.topology))
        for holding in holdings.values():
            self._reseat(holding, names)
        self.ledger.audit()
        for entry in entries:
            again = self.asker.entry(tuple(ask.gang for ask in entry.asks), entry.number)
            again.promised, again.written, again.since = entry.promised, entry.written, entry.since
            self.enqueue(again)
        self.fresh = [self.queue.entries[entry.uid] for entry in self.fresh]
        self._cluster_changed()

    def _reseat(self, holding: Holding, names: Sequence[str]) -> None:
        parts, holding.parts, holding.domain = holding.parts, [], NOWHERE
        holding.blueprint = self.asker.blueprint(holding.gang)
        holding.what = None if holding.what is None else holding.blueprint.plain
        self.running[holding.uid] = holding
        for part in parts:
            kept = [
                (self.ledger.index[names[n]], c)
                for n, c in zip(part.nodes.tolist(), part.counts.tolist(), strict=True)
                if names[n] in self.ledger.index
            ]
            if kept:
                nodes, counts = (np.array(column, dtype=np.int64) for column in zip(*kept, strict=True))
                self.seat(
                    holding,
                    Part(part.role, holding.blueprint.shapes[part.role], nodes, counts, int(counts.sum())),
                )
        self.asker.count_one(holding.what, 1)
        self.domains.take(holding)
        self.track(holding)

    def _cluster_changed(self) -> None:
        self.outlook = None
        self.room_grew = self.news = True
        for kind in self.queue.kinds.values():
            self.asker.judge(kind)

    # The future

    def future(self, now: float) -> Counted | Nodewise:
        """Counts while they are exact, nodes otherwise. Built when first needed, then kept up with."""
        shape = self.asker.only_shape()
        if self.outlook is not None and shape is self.outlook_of:
            return self.outlook
        self.outlook_of = shape
        running = self.running.values()
        if shape is not None and self._each_holds_a_slot(shape):
            self.outlook = Counted(shape, now, running, self.promises.values())
        else:
            self.outlook = Nodewise(self.ledger, self.asker.place, now, running, self.promises.values())
        for entry in self.outlook.lost:  # nodes failed or someone overstayed: whoever it was promised to asks anew
            entry.promised = None
            del self.promises[entry.uid]
            self.room_grew = True
        return self.outlook

    def _each_holds_a_slot(self, shape: Shape) -> bool:
        """Whether everyone who ends gives slots back: not where nodes were closed or shrank under them."""
        if self.ledger.overdrawn:
            return False
        closed = None if shape.allowed is None else ~shape.allowed
        return closed is None or bool((self.ledger.free == self.ledger.capacity)[:, closed].all())

    def has_room_for(self, uid: str) -> bool:
        """Whether a waiting gang fits into what is free now, promises aside."""
        entry = self.queue.entries[uid]
        single = entry.kind.single
        gang = entry.gang
        if single is not None and not self.tenants.concerns(gang.namespace, gang.roles[0]):
            return self.present.total(single[0]) >= single[1]
        return self.asker.place(self.present, entry, None) is not None

    def why(self, uid: str, now: float) -> str:
        """Why a gang has not started, or nothing if it has."""
        return next((waiting.reason for waiting in explain(self, now) if waiting.uid == uid), "")

    @property
    def firm(self) -> bool:
        """Whether everything that runs has a stated limit, so that a promise rests on no guess."""
        return all(h.gang.walltime is not None for h in self.running.values())

    def wake_at(self, now: float) -> float | None:
        """The next moment at which time alone changes the plan."""
        times = [e.promised for e in self.promises.values() if e.promised is not None and e.promised > now]
        if self.queue.young:
            times.append(self.queue.young[0][0] + self.policy.age_bound)
        for uid in self.partial:
            since = self.running[uid].partial_since
            if since is not None:
                times.append(since + self.policy.repair_grace)
        return min((time for time in times if time > now), default=None)
