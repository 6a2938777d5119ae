"""Histories that hypothesis writes, one event at a time, and shortens when one of them breaks a promise.

`tests.plan.body` carries the plans out and keeps books of its own; `Watched` is stricter where the history allows it,
and remembers every plan, so that the same events told to a fresh state must give the same ones. Between two cycles
any number of things may happen, as in a controller that was busy.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.model.topology import Closeness, Parallelism, Topology
from muster.plan.actions import Bind, Plan, Reserve, Stop
from muster.plan.explain import explain
from muster.plan.policy import parse
from tests.conftest import FIRED
from tests.plan.body import EPSILON, Body
from tests.plan.scenes import GPU
from tests.plan.test_promises import told

POLICIES = ("fcfs", "easy", "easy-sjbf", "easy:wfp3", "conservative")
STRICT = ("easy", "easy-sjbf")  # one promise at a time, in order of submission: nothing but misfortune moves it
ACTIONS = ("start", "backfill", "repair", "grow", "reserve", "stop")
REQUESTS = ({GPU: 1, "cpu": 2}, {GPU: 2, "cpu": 2}, {"cpu": 3})
LEVELS = ("zone", "rack")
GRACE = 4.0
EXAMPLES = 150  # hypothesis tries many histories in variations: fewer leave some action out


class Watched(Body):
    """A body that remembers every plan, and forgives a promise moved only what its owner must expect."""

    def __init__(self, nodes: list[Node], policy: str) -> None:
        rules = replace(parse(policy), age_bound=60.0, repair_grace=GRACE)
        super().__init__(nodes, Topology(LEVELS), rules)
        self.plans: list[tuple[float, list[object]]] = []
        self.pledges: dict[str, float] = {}  # promises that nothing has happened to since

    # Events that Body does not know

    def hasten(self, uid: str) -> None:
        self.finish(uid)

    def overstay(self, uid: str, more: float) -> None:
        self.live[uid].ends += more

    def fail(self, name: str) -> None:
        """A node is not ready, and its members are gone."""
        for live in list(self.live.values()):
            for (role, node), count in list(live.seats.items()):
                if node == name:
                    self.lose(live.gang.uid, role, node, count)
        self.worsen(replace(self.nodes[name], ready=False))

    def cordon(self, name: str) -> None:
        self.worsen(replace(self.nodes[name], schedulable=False))

    def worsen(self, node: Node) -> None:
        self.put_node(node)
        self.pledges.clear()

    def recover(self, name: str) -> None:
        self.put_node(replace(self.nodes[name], ready=True, schedulable=True))

    def withdraw(self, uid: str) -> None:
        super().withdraw(uid)
        self.pledges = {uid: at for uid, at in self.pledges.items() if uid in self.waiting}

    # What every cycle is held to

    def plan(self) -> Plan:
        if self.overstayed():
            self.pledges.clear()
        plan = super().plan()
        self.plans.append((self.now, told(plan)))
        for uid, at in self.pledges.items():
            assert at > self.now, f"{uid} was promised {at} and waits at {self.now}"
        reasons = {waiting.uid: waiting.reason for waiting in explain(self.state, self.now)}
        assert reasons.keys() == self.waiting.keys()
        assert all(reasons.values()), reasons
        return plan

    def overstayed(self) -> bool:
        return any(live.expected_end <= self.now for live in self.live.values())

    def _bound(self, bind: Bind) -> None:
        super()._bound(bind)
        gang, live = bind.gang, self.live[bind.gang.uid]
        if bind.why == "repair":
            self.pledges.clear()
        elif bind.why in {"start", "backfill"}:
            assert all(live.held(i) >= role.min for i, role in enumerate(gang.roles)), f"{gang.uid} started in part"
            assert self.pledges.pop(gang.uid, self.now) >= self.now

    def _reserved(self, action: Reserve) -> None:
        super()._reserved(action)
        uid, at = action.gang.uid, action.reservation.at
        assert at <= self.pledges.get(uid, at) + EPSILON, f"{uid} was promised {self.pledges[uid]}, now {at}"
        if self.policy.name in STRICT and not self.overstayed():
            self.pledges[uid] = at

    def _stopped(self, action: Stop) -> None:
        super()._stopped(action)
        self.pledges.clear()


def a_role(name: str, members: int, request: int, more: int, tp: int) -> Role:
    layout = Parallelism(tp=tp, dp=members) if tp > 1 else None
    size = members * tp
    return Role(name, size, REQUESTS[request], size + more * tp if more else 0, parallelism=layout)


def roles(name: str) -> st.SearchStrategy[Role]:
    return st.builds(
        a_role,
        st.just(name),
        members=st.integers(1, 6),
        request=st.sampled_from([0, 0, 1, 2]),
        more=st.sampled_from([0, 0, 0, 1, 3]),
        tp=st.sampled_from([1, 1, 1, 2]),
    )


CLOSENESS = (
    Closeness(),
    Closeness(),
    Closeness(required="rack"),
    Closeness(required="zone"),
    Closeness(preferred="rack"),
)
gangs = st.builds(
    Gang,
    uid=st.just(""),
    roles=st.one_of(st.tuples(roles("worker")), st.tuples(roles("worker"), roles("server"))),
    submitted=st.just(0.0),
    walltime=st.sampled_from([None, 1.0, 3.0, 5.0, 9.0, 20.0]),
    closeness=st.sampled_from(CLOSENESS),
)
real = st.sampled_from([0.3, 0.7, 1.0, 1.0])  # what it uses of the time it may run
some = st.integers(0, 99)  # one of those there are
crowds = st.lists(st.tuples(gangs, real), min_size=1, max_size=5)
pause = st.sampled_from([None, 0.0, 0.0, 1.0, 4.0])  # until the next event; None: it comes before the next cycle


class Misfortunes(RuleBasedStateMachine):
    """A small cluster on which everything happens that the events of `State` can say."""

    fired: ClassVar[Counter[str]] = Counter()

    @initialize(
        policy=st.sampled_from(POLICIES),
        sizes=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6),
        alike=st.booleans(),
        punctual=st.booleans(),
        failing=st.sampled_from([True, True, False]),
        crowd=crowds,
    )
    def open(  # with gangs, as hypothesis leaves out rules at random, and without any all is quiet
        self,
        policy: str,
        sizes: list[int],
        alike: bool,
        punctual: bool,
        failing: bool,
        crowd: list[tuple[Gang, float]],
    ) -> None:
        nodes = [
            Node(f"n{i}", {GPU: size, "cpu": 4 * size}, {"zone": f"z{i // 4}", "rack": f"r{i // 2}"})
            for i, size in enumerate(sizes)
        ]
        self.fresh: Callable[[], Watched] = lambda: Watched(nodes, policy)
        self.body = self.fresh()
        self.events: list[tuple[str, tuple[object, ...]]] = []
        self.alike, self.punctual, self.failing = alike, punctual, failing
        self.halves: list[Gang] = []
        self.made = 0
        self.submit(crowd, 0.0)

    def tell(self, event: str, *args: object, then: float | None = None) -> None:
        self.events.append((event, args))
        getattr(self.body, event)(*args)
        if then == 0.0:
            self.tell("plan")
        elif then is not None:
            self.tell("run", self.body.now + then)

    def name(self, gang: Gang, group: str = "") -> Gang:
        """As its owner would submit it here: where shapes are alike, the future is counted."""
        self.made += 1
        if self.alike:
            gang = replace(gang, roles=(replace(gang.roles[0], request=REQUESTS[0], parallelism=None),))
            gang = replace(gang, closeness=Closeness())
        return replace(gang, uid=f"g{self.made}", submitted=self.body.now, group=group, group_size=2 if group else 1)

    def send(self, gang: Gang, share: float, then: float | None) -> None:
        self.tell("submit", gang, (gang.walltime or 6.0) * share, then=then)

    # Gangs

    @rule(crowd=crowds, then=pause)
    def arrive(self, crowd: list[tuple[Gang, float]], then: float | None) -> None:
        self.submit(crowd, then)

    def submit(self, crowd: list[tuple[Gang, float]], then: float | None) -> None:
        for gang, share in crowd[:-1]:
            self.send(self.name(gang), share, None)
        gang, share = crowd[-1]
        self.send(self.name(gang), share, then)

    @rule(first=gangs, second=gangs, share=real, apart=st.booleans(), then=pause)
    def submit_two(self, first: Gang, second: Gang, share: float, apart: bool, then: float | None) -> None:
        """A group of two, or its first half."""
        group = f"group{self.made}"
        self.send(self.name(first, group), share, None)
        other = self.name(second, group)
        if apart:
            self.halves.append(other)
        else:
            self.send(other, share, then)

    @precondition(lambda self: self.halves)
    @rule(share=real, then=pause)
    def complete_group(self, share: float, then: float | None) -> None:
        self.send(replace(self.halves.pop(), submitted=self.body.now), share, then)

    @precondition(lambda self: self.body.waiting)
    @rule(which=some, then=pause)
    def withdraw(self, which: int, then: float | None) -> None:
        uids = sorted(self.body.waiting)
        self.tell("withdraw", uids[which % len(uids)], then=then)

    @rule(time=st.sampled_from([1.0, 5.0, 12.0]))
    def pass_time(self, time: float) -> None:
        """Whoever's time is up ends on time."""
        self.tell("run", self.body.now + time)

    @precondition(lambda self: self.body.live)
    @rule(which=some, then=pause)
    def end_early(self, which: int, then: float | None) -> None:
        uids = sorted(self.body.live)
        self.tell("hasten", uids[which % len(uids)], then=then)

    @precondition(lambda self: not self.punctual and self.body.live)
    @rule(which=some, more=st.sampled_from([1.0, 7.0]))
    def end_late(self, which: int, more: float) -> None:
        uids = sorted(self.body.live)
        self.tell("overstay", uids[which % len(uids)], more)

    # Nodes

    @precondition(lambda self: self.failing)
    @rule(kind=st.sampled_from(["fail", "fail", "cordon", "recover", "recover"]), which=some, then=pause)
    def change_node(self, kind: str, which: int, then: float | None) -> None:
        self.tell(kind, f"n{which % len(self.body.nodes)}", then=then)

    # The end of the history

    def teardown(self) -> None:
        """All that runs ends, whoever can start has started, and a fresh state told the same plans the same."""
        if not hasattr(self, "body"):
            return
        for _ in range(2 * self.made + 10):
            self.tell("step", self.body.now + 50.0)
        assert not self.body.live
        entries = self.body.state.queue.entries.values()
        hopeless = {ask.gang.uid for entry in entries if entry.kind.hopeless for ask in entry.asks}
        starved = [uid for uid, gang in self.body.waiting.items() if uid not in hopeless and not gang.group]
        assert starved == []
        again = self.fresh()
        for event, args in self.events:
            getattr(again, event)(*args)
        assert again.plans == self.body.plans
        self.fired.update(self.body.fired)


def test_no_history_breaks_a_promise(record_property: Callable[[str, object], None]) -> None:
    Misfortunes.fired.clear()
    run_state_machine_as_test(
        Misfortunes, settings=settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None)
    )
    record_property(FIRED, ", ".join(f"{name} {Misfortunes.fired[name]}" for name in ACTIONS))
    assert set(ACTIONS) <= set(Misfortunes.fired), "some action was never planned"
