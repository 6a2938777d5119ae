"""What the brain is told: after any sequence of readings it believes the last one, and held seats beside it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.control.facts import Facts, seats_of
from muster.control.seating import assign
from muster.dialects.cluster import Key
from muster.dialects.reading import Reading
from muster.model.node import Node
from muster.plan.cycle import cycle
from muster.plan.policy import Policy
from muster.plan.state import State
from tests.dialects.scenes import START, Scene

KEY = Key("job", "default", "train")
MEMBERS = 4
CAPACITY = {"cpu": 3000, "pods": 110}
NODES = ("a", "b", "c")
JOB = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  parallelism: {MEMBERS}
  completions: {MEMBERS}
  completionMode: Indexed
  template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: "1"}}}}}}]}}}}
"""
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class Told:
    """A gang's objects, and a brain that is told of them."""

    scene: Scene = field(default_factory=lambda: Scene(JOB))
    state: State = field(default_factory=lambda: State([Node(name, CAPACITY) for name in NODES], policy=Policy("easy")))
    facts: Facts = field(init=False)
    pods: dict[int, str] = field(default_factory=dict)
    serial: int = 0

    def __post_init__(self) -> None:
        self.facts = Facts(self.state)

    def create(self, index: int) -> None:
        if index not in self.pods:
            self.serial += 1
            self.pods[index] = f"train-{index}-{self.serial}"
            self.scene.pod(self.pods[index], {INDEX: str(index)}, owner=("batch/v1", "Job", "train"))

    def delete(self, index: int) -> None:
        if index in self.pods:
            self.scene.delete("Pod", self.pods.pop(index))

    def bind(self, index: int, node: str) -> None:
        if index in self.pods and not self.node_of(self.pods[index]):
            self.scene.bind(self.pods[index], node)

    def node_of(self, name: str) -> str:
        return str(self.scene.trees["", "Pod", "default", name]["spec"].get("nodeName", ""))

    def succeed(self, index: int) -> None:
        if index in self.pods and self.node_of(self.pods[index]):
            self.scene.phase(self.pods[index], "Succeeded")

    def reading(self) -> Reading | None:
        return self.scene.gangs().get(str(KEY))

    def tell(self) -> Reading | None:
        reading = self.reading()
        self.facts.tell(KEY, reading, START)
        return reading

    def plan(self) -> None:
        """One cycle, carried out at once."""
        reading = self.tell()
        plan, _ = cycle(self.state, START)
        for bind in plan.binds:
            assert reading is not None
            self.facts.started(KEY)
            for seat in assign(reading, bind.seats):
                self.scene.bind(seat.pod, seat.node)

    def held(self) -> Counter[tuple[int, str]]:
        (holding,) = self.state.running.values()
        return self.facts.believed(holding)


INDEXES = st.integers(0, MEMBERS - 1)
STEPS = st.one_of(
    st.tuples(st.just("create"), INDEXES),
    st.tuples(st.just("create"), INDEXES),
    st.tuples(st.just("delete"), INDEXES),
    st.tuples(st.just("bind"), INDEXES, st.sampled_from((*NODES, "unknown"))),
    st.tuples(st.just("succeed"), INDEXES),
    st.tuples(st.just("plan")),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=16), st.integers(0, MEMBERS))
def test_after_any_sequence_the_brain_believes_the_last_reading(steps: list[tuple[str, ...]], first: int) -> None:
    told = Told()
    for index in range(first):
        told.create(index)
    for name, *arguments in steps:
        getattr(told, name)(*arguments)
        told.tell()
    check(told, told.tell())
    assert events_of(told) == []


def check(told: Told, reading: Reading | None) -> None:
    state, facts = told.state, told.facts
    if reading is None or reading.gang is None:
        assert (facts.waiting, facts.running, facts.keys, state.running, state.queue.entries) == ({}, {}, {}, {}, {})
        return
    assert facts.keys == {reading.gang.uid: KEY}
    if reading.running is None:
        assert state.running == {}
        assert [entry.gang for entry in state.queue.entries.values()] == [reading.gang]
    else:
        assert state.queue.entries == {}
        (holding,) = state.running.values()
        assert replace(holding.gang, promised=None) == replace(reading.gang, promised=None)
        known = Counter({seat: n for seat, n in seats_of(reading.running.seats).items() if seat[1] in NODES})
        believed = told.held()
        assert known <= believed
        done = sum(reading.running.succeeded)
        assert believed.total() + done <= max(MEMBERS, known.total() + done)
        free = dict(zip(state.ledger.names, state.ledger.rows[state.ledger.resources["cpu"]].tolist(), strict=True))
        assert free == {node: 3000 - 1000 * sum(n for (_, on), n in believed.items() if on == node) for node in NODES}


def events_of(told: Told) -> list[str]:
    """What telling the same once more changes."""
    before = fingerprint(told.state)
    told.tell()
    return [name for name, was, now in zip(NAMES, before, fingerprint(told.state), strict=True) if was != now]


NAMES = ("ledger", "arrivals", "running", "queue")


def fingerprint(state: State) -> Iterator[object]:
    yield state.ledger.now
    yield state.arrivals
    yield {uid: id(holding) for uid, holding in state.running.items()}
    yield {uid: id(entry) for uid, entry in state.queue.entries.items()}


def whole() -> Told:
    told = Told()
    for index in range(MEMBERS):
        told.create(index)
    told.plan()
    told.tell()
    return told


def test_a_plan_that_came_true_is_no_news() -> None:
    told = whole()
    assert told.held().total() == MEMBERS
    assert events_of(told) == []


def test_the_seat_of_a_member_that_is_gone_is_held_for_the_next() -> None:
    told = whole()
    seats = told.held()
    told.delete(2)
    told.tell()
    assert told.held() == seats
    told.create(2)
    told.tell()
    assert told.held() == seats


def test_a_seat_on_a_node_that_broke_is_not_held() -> None:
    told = whole()
    node = told.node_of(told.pods[2])
    told.delete(2)
    told.state.update_node(Node(node, CAPACITY, ready=False))
    told.tell()
    assert told.held().total() == MEMBERS - 1


def test_a_member_on_an_unknown_node_is_lost_and_told_once() -> None:
    told = Told()
    told.create(0)
    told.bind(0, "unknown")
    told.tell()
    assert told.held().total() == 0
    assert events_of(told) == []


def test_a_gang_that_asks_for_something_else_queues_anew() -> None:
    told = Told()
    for index in range(MEMBERS):
        told.create(index)
    told.tell()
    told.scene.patch("Job", "train", {"spec": {"parallelism": 2, "completions": 2}})
    told.delete(2)
    told.delete(3)
    reading = told.tell()
    check(told, reading)
    assert told.state.arrivals == 2


@pytest.mark.parametrize("start", [False, True])
def test_a_gang_that_is_gone_leaves_nothing_behind(start: bool) -> None:
    told = whole() if start else Told()
    told.create(0)
    told.tell()
    told.scene = Scene()
    told.tell()
    check(told, None)
    assert (told.state.ledger.free == told.state.ledger.capacity).all()
