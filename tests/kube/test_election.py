"""Two contenders, one record, and a network that loses and delays: never do both lead."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.kube.election import Election, Read, Record, Wait, Write

DURATION = 5.0


def record(holder: str, version: str, renewed: str = "") -> Record:
    return Record(holder, DURATION, renewed, version=version)


def leader(now: float = 0.0) -> Election:
    """One that just took a released lease."""
    one = Election("a", DURATION)
    one.observed(record("", "1"), now)
    write = one.next(now)
    assert isinstance(write, Write)
    one.sent(write, "t1", now)
    one.observed(record("a", "2", "t1"), now + 0.1)
    return one


def test_first_it_reads() -> None:
    assert Election("a", DURATION).next(0.0) == Read()


def test_a_released_lease_is_taken_at_once() -> None:
    one = leader(10.0)
    assert one.leads(10.1)
    assert one.valid_until == 10.0 + DURATION * 0.95
    assert not one.leads(one.valid_until)


def test_a_lease_that_was_not_there_is_trusted_only_after_a_duration() -> None:
    one = Election("a", DURATION)
    one.observed(None, 0.0)
    write = one.next(0.0)
    assert write == Write("a", "", 0, takes=True)
    one.sent(write, "t1", 0.0)
    one.observed(record("a", "1", "t1"), 1.0)
    assert not one.leads(4.0)
    renewal = one.next(2.0)
    assert isinstance(renewal, Write)
    one.sent(renewal, "t2", 4.0)
    one.observed(record("a", "2", "t2"), 4.1)
    assert not one.leads(5.9)
    assert one.leads(6.0)


def test_anothers_lease_is_taken_only_when_it_stood_still_for_its_duration() -> None:
    one = Election("b", DURATION)
    one.observed(record("a", "1"), 0.0)
    assert one.next(0.0) == Wait(one.period)
    one.observed(record("a", "2"), 3.0)
    one.observed(record("a", "2"), 7.0)
    assert one.next(7.5) == Wait(8.0)
    assert one.next(8.0) == Write("b", "2", 1, takes=True)


def test_a_renewal_without_an_answer_counts_when_a_read_shows_it() -> None:
    one = leader()
    renewal = one.next(2.0)
    assert isinstance(renewal, Write)
    assert not renewal.takes
    one.sent(renewal, "t2", 2.0)
    one.unknown(3.0, 0.5)
    assert one.valid_until == DURATION * 0.95
    assert one.next(3.2) == Wait(3.5)
    assert one.next(3.5) == Read()
    one.observed(record("a", "3", "t2"), 3.6)
    assert one.valid_until == 2.0 + DURATION * 0.95


def test_a_lost_race_is_looked_at_again() -> None:
    one = leader()
    one.refused(2.0)
    assert one.next(2.0) == Read()
    one.observed(record("b", "7"), 2.1)
    assert not one.leads(2.1)


def test_a_lease_that_vanished_ends_leading_at_once() -> None:
    one = leader()
    one.observed(None, 1.0)
    assert not one.leads(1.0)


def test_release_gives_up_first_and_says_so() -> None:
    one = leader()
    assert one.release(1.0) == Write("", "2", 0, takes=False)
    assert not one.leads(1.0)
    assert Election("b", DURATION).release(0.0) is None


def test_a_lease_not_yet_trusted_is_left_to_run_out() -> None:
    one = Election("a", DURATION)
    one.observed(None, 0.0)
    one.sent(Write("a", "", 0, takes=True), "t1", 0.0)
    one.observed(record("a", "1", "t1"), 0.1)
    assert one.release(1.0) is None


@dataclass
class Contender:
    """An election with a clock of its own, and an own way of losing and delaying."""

    election: Election
    offset: float
    rate: float
    stopped: bool = False  # what it sent may still arrive, but it acts no more

    def clock(self, now: float) -> float:
        return self.offset + now * self.rate


@dataclass
class World:
    """True time, the record, and what is to happen when."""

    chance: random.Random
    loss: float
    now: float = 0.0
    stored: Record | None = None
    version: int = 0
    led: set[str] = field(default_factory=set)
    queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    order: "itertools.count[int]" = field(default_factory=itertools.count)

    def at(self, when: float, deed: Callable[[], None]) -> None:
        heapq.heappush(self.queue, (when, next(self.order), deed))

    def delay(self) -> float:
        """Mostly quick, sometimes far beyond any time-out."""
        return self.chance.choice([0.001, 0.01, 0.1, 1.0]) if self.chance.random() > 0.1 else 12.0

    def write(self, write: Write, renewed: str) -> Record | None:
        """The server's compare and swap."""
        if (self.stored.version if self.stored else "") != write.version:
            return None
        self.version += 1
        length = DURATION if write.holder else 1.0
        self.stored = Record(write.holder, length, renewed, version=str(self.version))
        return self.stored

    def step(self, each: Contender) -> None:
        """One turn of the contender's loop: one call at a time, given up after a third of the duration."""
        if each.stopped:
            return
        now = each.clock(self.now)
        todo = each.election.next(now)
        if isinstance(todo, Wait):
            self.at(self.now + max(0.001, (todo.until - now) / each.rate), lambda: self.step(each))
            return
        renewed = f"{each.election.identity}-{next(self.order)}"
        if isinstance(todo, Write):
            each.election.sent(todo, renewed, now)
        self.call(each, todo, renewed)

    def call(self, each: Contender, todo: Read | Write, renewed: str) -> None:
        there, back = self.delay(), self.delay()
        lost_there, lost_back = (self.chance.random() < self.loss for _ in range(2))
        answers: list[Record | None] = []

        def arrive() -> None:
            answers.append(self.stored if isinstance(todo, Read) else self.write(todo, renewed))

        if not lost_there:
            self.at(self.now + there, arrive)
        if lost_there or lost_back or there + back > DURATION / 3:
            self.at(self.now + DURATION / 3, lambda: self.nothing(each))
        else:
            self.at(self.now + there + back, lambda: self.answer(each, todo, answers[0]))

    def nothing(self, each: Contender) -> None:
        each.election.unknown(each.clock(self.now), 0.2)
        self.step(each)

    def answer(self, each: Contender, todo: Read | Write, found: Record | None) -> None:
        if isinstance(todo, Write) and found is None:
            each.election.refused(each.clock(self.now))
        else:
            each.election.observed(found, each.clock(self.now))
        self.step(each)

    def meddle(self) -> None:
        """Somebody deletes the lease."""
        self.stored = None

    def play(self, contenders: list[Contender], until: float) -> None:
        """Run, and look after every event whether more than one leads."""
        while self.queue and self.queue[0][0] < until:
            self.now, _, deed = heapq.heappop(self.queue)
            deed()
            running = [each for each in contenders if not each.stopped]
            leading = [each.election.identity for each in running if each.election.leads(each.clock(self.now))]
            assert len(leading) <= 1, (self.now, leading)
            self.led.update(leading)


RATES = st.floats(0.98, 1.02)
OFFSETS = st.floats(-1e4, 1e6)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    clocks=st.lists(st.tuples(OFFSETS, RATES), min_size=2, max_size=3),
    loss=st.sampled_from([0.0, 0.1, 0.4]),
    deletions=st.lists(st.floats(0, 200), max_size=4),
    restarts=st.lists(st.floats(0, 200), max_size=3),
)
def test_two_never_lead_at_once(
    seed: int, clocks: list[tuple[float, float]], loss: float, deletions: list[float], restarts: list[float]
) -> None:
    world = World(random.Random(seed), loss)
    contenders = [Contender(Election(f"c{i}", DURATION), *clock) for i, clock in enumerate(clocks)]
    for each in contenders:
        world.at(world.chance.random() * 3, lambda each=each: world.step(each))  # type: ignore[misc]
    for when in deletions:
        world.at(when, world.meddle)
    for index, when in enumerate(restarts):
        world.at(when, lambda index=index: restart(world, contenders, index))  # type: ignore[misc]
    world.play(contenders, 240.0)
    if loss < 0.4:
        assert world.led, "nobody ever led"


def restart(world: World, contenders: list[Contender], index: int) -> None:
    """One is stopped in order, giving the lease up if that arrives, and another starts there."""
    old = contenders[index % len(contenders)]
    if old.stopped:
        return
    write = old.election.release(old.clock(world.now))
    old.stopped = True
    if write is not None and world.chance.random() > world.loss:
        renewed = f"{old.election.identity}-end"
        world.at(world.now + world.delay(), lambda: void(world.write(write, renewed)))
    fresh = Contender(Election(f"r{index}", DURATION), old.offset, old.rate)
    contenders.append(fresh)
    world.step(fresh)


def void(_: object) -> None:
    """Do nothing with it."""


def test_somebody_takes_over_within_two_durations() -> None:
    world = World(random.Random(1), 0.0)
    world.delay = lambda: 0.01  # type: ignore[method-assign]
    first, second = (Contender(Election(name, DURATION), 0.0, 1.0) for name in "ab")
    world.step(first)
    world.play([first], 20.0)
    assert first.election.leads(20.0)
    first.stopped = True
    world.step(second)
    world.play([second], 20.0 + DURATION + 0.1)
    assert world.led == {"a", "b"}
