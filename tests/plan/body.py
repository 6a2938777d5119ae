"""A body for the brain: it carries out plans over a clock, keeps books of its own, and checks every promise.

Nothing here asks the ledger what is free: who holds what is counted again from the plan's actions alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from muster.model.gang import Gang, Running, Seats
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.actions import Bind, Plan, Reserve, Stop
from muster.plan.cycle import cycle
from muster.plan.forest import path
from muster.plan.nodewise import Nodewise
from muster.plan.policy import Policy
from muster.plan.rules import _admits
from muster.plan.state import State

EPSILON = 1e-6


@dataclass
class Live:
    """A gang that holds nodes, as the outside world sees it."""

    gang: Gang
    started: float
    ends: float  # when it really ends, whatever it said
    seats: Counter[tuple[int, str]] = field(default_factory=Counter)
    succeeded: list[int] = field(default_factory=list)
    partial_since: float | None = None

    def held(self, role: int) -> int:
        return sum(count for (index, _), count in self.seats.items() if index == role)

    def missing(self) -> int:
        return sum(max(role.min - self.held(i) - self.succeeded[i], 0) for i, role in enumerate(self.gang.roles))

    @property
    def expected_end(self) -> float:
        return inf if self.gang.length is None else self.started + self.gang.length


@dataclass
class Written:
    """A promise as it stands in the API. Once something happened that may move it, it is `excused`."""

    at: float
    excused: bool = False


class Body:
    def __init__(self, nodes: Sequence[Node], topology: Topology, policy: Policy) -> None:
        self.now = 0.0
        self.nodes = {node.name: node for node in nodes}
        self.topology = topology
        self.policy = policy
        self.state = State(nodes, topology, policy)
        self.waiting: dict[str, Gang] = {}
        self.lengths: dict[str, float] = {}
        self.live: dict[str, Live] = {}
        self.written: dict[str, Written] = {}
        self.fired: Counter[str] = Counter()
        self.started_at: dict[str, float] = {}
        self.last = Plan()

    # Events

    def submit(self, gang: Gang, length: float) -> None:
        """It will really run for `length`."""
        self.lengths[gang.uid] = length
        self._wait(gang)

    def _wait(self, gang: Gang) -> None:
        self.waiting[gang.uid] = replace(gang, promised=None)
        self.state.submit(self.waiting[gang.uid])
        self._excuse_outranked(gang)

    def _excuse_outranked(self, gang: Gang) -> None:
        ranks = {entry.uid: entry.rank for entry in self.state.queue.entries.values()}
        mine = ranks.get(gang.group or gang.uid)
        for uid, promise in self.written.items():
            holder = self.waiting[uid]
            theirs = ranks.get(holder.group or uid)
            if mine is not None and (theirs is None or mine < theirs):
                promise.excused = True

    def excuse(self) -> None:
        for promise in self.written.values():
            promise.excused = True

    def withdraw(self, uid: str) -> None:
        group = self.waiting[uid].group
        for other in [each for each in self.waiting.values() if each.uid == uid or (group and each.group == group)]:
            del self.waiting[other.uid]
            self.written.pop(other.uid, None)
            if other.uid == uid:
                self.state.withdraw(uid)

    def finish(self, uid: str) -> None:
        del self.live[uid]
        self.state.finish(uid, self.now)

    def lose(self, uid: str, role: int, node: str, count: int) -> None:
        live = self.live[uid]
        self._drop(live, role, node, count)
        self.state.lose(uid, role, node, count, self.now)
        self._check_partial(live)
        self.excuse()

    def succeed(self, uid: str, role: int, node: str, count: int) -> None:
        live = self.live[uid]
        self._drop(live, role, node, count)
        live.succeeded[role] += count
        self.state.succeed(uid, role, node, count)

    def _drop(self, live: Live, role: int, node: str, count: int) -> None:
        assert live.seats[role, node] >= count
        live.seats[role, node] -= count
        live.seats = +live.seats

    def _check_partial(self, live: Live) -> None:
        if not live.missing():
            live.partial_since = None
        elif live.partial_since is None:
            live.partial_since = self.now

    def remove_node(self, name: str) -> None:
        """It is gone, and who was on it is told so first, as a controller sees its pods vanish."""
        for live in list(self.live.values()):
            for (role, node), count in list(live.seats.items()):
                if node == name:
                    self.lose(live.gang.uid, role, node, count)
        del self.nodes[name]
        self.state.set_nodes(self.nodes.values())
        self.excuse()

    def put_node(self, node: Node) -> None:
        """A node joins, or is cordoned, tainted or changed in size."""
        worse = node.name in self.nodes
        self.nodes[node.name] = node
        self.state.update_node(node)
        if worse:
            self.excuse()

    # Time

    def plan(self) -> Plan:
        self._note_overruns()
        outlook = self.state.outlook
        plan, _ = cycle(self.state, self.now)
        if (
            self.policy.reservations != 1
            and isinstance(self.state.outlook, Nodewise)
            and self.state.outlook is not outlook
        ):
            self.excuse()  # several promises over mixed shapes are seated anew one by one, which may not find all
        self.last = plan
        for action in plan.actions:
            if isinstance(action, Bind):
                self._bound(action)
            elif isinstance(action, Reserve):
                self._reserved(action)
            else:
                self._stopped(action)
        self._look(plan)
        for action in plan.actions:
            if isinstance(action, Stop):  # its owner starts it over
                gang = self.live.pop(action.gang.uid).gang
                self.state.finish(gang.uid, self.now)
                self._wait(gang)
        return plan

    def step(self, until: float = inf) -> None:
        """To the next moment at which anything happens, and plan there."""
        wake = self.state.wake_at(self.now)
        coming = [live.ends for live in self.live.values()] + [until] + ([] if wake is None else [wake])
        self.now = max(self.now, min(coming))
        for uid in sorted(uid for uid, live in self.live.items() if live.ends <= self.now):
            self.finish(uid)
        self.plan()

    def run(self, until: float) -> None:
        while self.now < until:
            self.step(until)

    def _note_overruns(self) -> None:
        if any(promise.at < self.now for promise in self.written.values()):
            self.excuse()  # who waits since somebody overstayed is in the way of others
        if self.policy.moves or any(live.expected_end <= self.now for live in self.live.values()):
            self.excuse()
        for entry in self.state.queue.entries.values():
            if not entry.aged and entry.gang.submitted + self.policy.age_bound <= self.now:
                self.excuse()  # it goes before whoever is younger

    # What every plan is held to

    def _bound(self, bind: Bind) -> None:
        self.fired[bind.why] += 1
        gang = bind.gang
        live = self.live.get(gang.uid)
        if live is None:
            assert bind.why in {"start", "backfill", "pod"}
            del self.waiting[gang.uid]
            promise = self.written.pop(gang.uid, None)
            if promise is not None and promise.at < self.now:
                self.excuse()  # somebody overstayed, and whoever waited for that may now be in the way of others
            self.started_at[gang.uid] = self.now
            live = self.live[gang.uid] = Live(gang, self.now, inf, succeeded=[0] * len(gang.roles))
        else:
            assert bind.why in {"repair", "grow", "pod"}
        if bind.why == "repair":
            self.excuse()
        for seats in bind.seats:
            tp = getattr(gang.roles[seats.role].parallelism, "tp", 1)
            assert not self.policy.whole or all(count % tp == 0 for count in seats.counts)
            assert len(set(seats.nodes)) == len(seats.nodes) == len(seats.counts)
            for node, count in zip(seats.nodes, seats.counts, strict=True):
                assert count > 0
                assert self._may_run(gang, seats.role, self.nodes[node]), f"{gang.uid} may not run on {node}"
                live.seats[seats.role, node] += count
        self._check_partial(live)
        assert bind.complete == (live.missing() == 0)
        if bind.complete and live.ends == inf:
            live.ends = self.now + self.lengths[gang.uid]
        self._check_seats(live)
        self._check_capacity(bind)

    @staticmethod
    def _may_run(gang: Gang, role: int, node: Node) -> bool:
        rules = gang.roles[role].rules
        chosen = all(node.labels.get(key) == value for key, value in rules.node_selector)
        return chosen and _admits((node.taints, node.schedulable, node.ready), rules.tolerations)

    def _check_seats(self, live: Live) -> None:
        gang = live.gang
        for index, role in enumerate(gang.roles):
            assert live.held(index) + live.succeeded[index] <= role.most
            if role.rules.away:
                assert all(count == 1 for (i, _), count in live.seats.items() if i == index)
        if gang.closeness.required and self.policy.whole:
            assert len(self.domains_of(live)) == 1

    def domains_of(self, live: Live) -> set[tuple[str, ...]]:
        levels = self.topology.levels
        depth = 1 + levels.index(live.gang.closeness.required)
        return {path(self.nodes[node], levels)[:depth] for _, node in live.seats}

    def _check_capacity(self, bind: Bind) -> None:
        """Promise 2, counted from the seats that were handed out."""
        used: dict[str, Counter[str]] = {name: Counter() for seats in bind.seats for name in seats.nodes}
        wanted = {
            (name, resource)
            for seats in bind.seats
            for name in seats.nodes
            for resource in bind.gang.roles[seats.role].request
        }
        trees: Counter[tuple[str, ...]] = Counter()
        for live in self.live.values():
            for (role, node), count in live.seats.items():
                if node in used:
                    for resource, amount in live.gang.roles[role].request.items():
                        used[node][resource] += amount * count
            if live.gang.closeness.resources and live.seats:
                for domain in self.domains_of(live):
                    for resource, amount in live.gang.closeness.resources:
                        trees[(live.gang.closeness.required, *domain, resource)] += amount
        for name, resource in wanted:  # a node that shrank may hold too much of something else
            most = self.nodes[name].capacity.get(resource, 0)
            assert used[name][resource] <= most, f"{name} is overcommitted in {resource}"
        for (level, *path_, resource), amount in trees.items():
            assert amount <= self.topology.resources.get((level, path_[-1]), {}).get(resource, 0)

    def _reserved(self, action: Reserve) -> None:
        """Promise 4: it never moves later without a cause."""
        self.fired["reserve"] += 1
        uid, at = action.gang.uid, action.reservation.at
        assert uid in self.waiting
        assert at >= self.now
        before = self.written.get(uid)
        if before is not None and not before.excused:
            assert at <= before.at + EPSILON, f"{uid} was promised {before.at}, now {at}"
        overdue = any(live.expected_end <= self.now for live in self.live.values())
        self.written[uid] = Written(at, excused=overdue)
        self.waiting[uid] = replace(self.waiting[uid], promised=action.reservation)

    def _stopped(self, action: Stop) -> None:
        """Promise 5: only who lacked members for as long as its grace, and cannot get them."""
        self.fired["stop"] += 1
        live = self.live[action.gang.uid]
        assert live.missing()
        assert live.partial_since is not None
        assert self.now - live.partial_since >= self.policy.repair_grace

    def _look(self, plan: Plan) -> None:
        """Promises 1, 4 and 6 after the whole plan."""
        stopped = {action.gang.uid for action in plan.actions if isinstance(action, Stop)}
        for uid, live in self.live.items():
            if live.partial_since is not None and uid not in stopped and self.policy.whole:
                assert self.now - live.partial_since < self.policy.repair_grace, f"{uid} is partial past its grace"
        groups = {gang.group for gang in self.waiting.values() if gang.group}
        for uid in self.started_at:
            if uid in self.live and self.started_at[uid] == self.now:
                assert self.live[uid].gang.group not in groups or uid in stopped, "a group started in part"
        for uid, promise in self.written.items():
            assert promise.excused or promise.at > self.now, f"{uid} was promised {promise.at} and waits at {self.now}"

    # The same world, told to a new leader

    def running(self) -> list[Running]:
        found = []
        for live in self.live.values():
            seats = []
            for index in range(len(live.gang.roles)):
                held = {node: count for (role, node), count in live.seats.items() if role == index}
                if held:
                    seats.append(Seats(index, tuple(held), tuple(held.values())))
            found.append(Running(live.gang, live.started, tuple(seats), tuple(live.succeeded), live.partial_since))
        return found

    def cold(self) -> State:
        """A state built from what the API holds, in no particular order."""
        state = State(reversed(list(self.nodes.values())), self.topology, self.policy)
        for each in reversed(self.running()):
            state.adopt(each)
        for gang in reversed(list(self.waiting.values())):
            state.submit(gang)
        return state
