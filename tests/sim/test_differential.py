"""The planner beside a scheduler of sixty lines, written from the published rules on a pool of equal processors."""

from bisect import insort

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.sim.engine import simulate
from muster.sim.workload import CPU, PER_UNIT, Job, Workload

PROCESSORS = 6
Record = tuple[int, int, int, int]  # submitted, processors, requested time, run time


class Flat:
    """Jobs are numbers. An end that is due by its request counts as free before anything else happens then."""

    def __init__(self, jobs: list[Record], policy: str) -> None:
        self.jobs, self.policy = jobs, policy
        self.queue: list[int] = []
        self.starts: dict[int, int] = {}
        self.running: set[int] = set()
        self.reserved: dict[int, int] = {}  # conservative: when each waiting job is to start

    def until(self, job: int) -> int:
        return self.starts[job] + self.jobs[job][2]

    def free(self, now: int, time: int, besides: dict[int, int]) -> int:
        """Free at a time, as requests and reservations go; whoever is over his request is gone."""
        used = sum(self.jobs[j][1] for j in self.running if max(self.until(j), now) > time)
        kept = sum(self.jobs[j][1] for j, at in besides.items() if at <= time < at + self.jobs[j][2])
        return PROCESSORS - used - kept

    def fits(self, now: int, job: int, at: int, besides: dict[int, int]) -> bool:
        steps = [at, *besides.values()]
        _, width, length, _ = self.jobs[job]
        return all(self.free(now, t, besides) >= width for t in steps if at <= t < at + length)

    def earliest(self, now: int, job: int, besides: dict[int, int]) -> int:
        ends = [self.until(j) for j in self.running] + [at + self.jobs[j][2] for j, at in besides.items()]
        times = sorted({now, *(end for end in ends if end > now)})
        return next(time for time in times if self.fits(now, job, time, besides))

    def start(self, now: int, job: int) -> None:
        self.starts[job] = now
        self.running.add(job)
        self.queue.remove(job)
        self.reserved.pop(job, None)

    def schedule(self, now: int) -> None:
        """Start heads while they fit; then, round the reservation of the first that does not, others."""
        while self.queue and self.fits(now, self.queue[0], now, {}):
            self.start(now, self.queue[0])
        if self.policy == "fcfs" or not self.queue:
            return
        head = self.queue[0]
        promise = {head: self.earliest(now, head, {})}
        rest = self.queue[1:]
        for job in sorted(rest, key=lambda j: self.jobs[j][2]) if self.policy == "easy-sjbf" else rest:
            if self.fits(now, job, now, promise):
                self.start(now, job)

    def reserve(self, now: int, job: int) -> None:
        self.reserved[job] = self.earliest(now, job, self.reserved)

    def compress(self, now: int) -> None:
        """After an end every reservation, in order of submission, moves up as far as it can."""
        for job in list(self.queue):
            self.reserved.pop(job)
            self.reserve(now, job)

    def run(self) -> dict[int, int]:
        """At one instant arrivals come first, in file order, then ends, with a pass after each."""
        events: list[tuple[int, int, int, int]] = []
        for job, record in enumerate(self.jobs):
            insort(events, (record[0], 0, job, job))
        while events:
            now, kind, _, job = events.pop(0)
            ended = kind == 1
            if ended:
                self.running.discard(job)
            elif not kind:
                self.queue.append(job)
            before = len(self.starts)
            if self.policy == "conservative":
                if not kind:
                    self.reserve(now, job)
                elif ended:
                    self.compress(now)
                for due in [j for j in self.queue if self.reserved[j] <= now]:
                    self.start(now, due)
                for reserved, at in self.reserved.items():
                    insort(events, (at, 2, reserved, reserved))  # a moment to look again
            elif ended or self.policy != "easy" or self.fits(now, job, now, {}):
                self.schedule(now)
            for number, started in enumerate(list(self.starts)[before:], start=before):
                insort(events, (now + self.jobs[started][3], 1, number, started))
        return self.starts


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Many ties: submissions and ends fall on the same few seconds."""
    clock, jobs = 0, []
    for _ in range(draw(st.integers(1, 14))):
        clock += draw(st.sampled_from([0, 0, 1, 2]))
        requested = draw(st.integers(1, 6))
        jobs.append((clock, draw(st.integers(1, PROCESSORS)), requested, draw(st.integers(1, requested))))
    return jobs


def workload(jobs: list[Record]) -> Workload:
    request = {CPU: PER_UNIT[CPU]}
    return Workload(
        "small",
        tuple(
            Job(Gang(str(i), (Role("job", width, request),), float(at), walltime=float(requested)), float(run), str(i))
            for i, (at, width, requested, run) in enumerate(jobs)
        ),
    )


def machine(nodes: int) -> list[Node]:
    return [Node(f"n{i}", {CPU: PROCESSORS // nodes * PER_UNIT[CPU]}) for i in range(nodes)]


def starts(jobs: list[Record], policy: str, nodes: int, tie_break: str = "pyss") -> dict[int, int]:
    history = simulate(workload(jobs), machine(nodes), policy=policy, tie_break=tie_break)
    return {int(each.job.id): int(each.started) for each in history.outcomes if each.started is not None}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "conservative"])
@settings(max_examples=150, deadline=None)
@given(records(), st.sampled_from([1, 2, 6]))
def test_every_job_starts_when_the_rules_say(policy: str, jobs: list[Record], nodes: int) -> None:
    assert starts(jobs, policy, nodes) == Flat(jobs, policy).run()


# 6 processors. 0 leaves one free until 10; 1 must wait for it; 2 ends before that; 3 is long, 4 short.
BY_HAND = [(0, 5, 10, 10), (1, 4, 10, 10), (2, 1, 5, 5), (3, 1, 20, 20), (4, 1, 3, 3)]
# 0 ends early, in the very second in which 2 arrives: only who looks before the end is counted may pass 1.
IN_ONE_SECOND = [(0, 3, 10, 5), (1, 6, 10, 10), (5, 3, 4, 4)]


@pytest.mark.parametrize("tie_break", ["pyss", "batch"])
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", {0: 0, 1: 10, 2: 10, 3: 10, 4: 15}),
        ("easy", {0: 0, 1: 10, 2: 2, 3: 7, 4: 10}),
        ("easy-sjbf", {0: 0, 1: 10, 2: 2, 3: 10, 4: 7}),
        ("conservative", {0: 0, 1: 10, 2: 2, 3: 7, 4: 10}),
    ],
)
def test_starts_worked_out_by_hand(policy: str, expected: dict[int, int], tie_break: str) -> None:
    assert starts(BY_HAND, policy, 1, tie_break) == expected
    assert starts(BY_HAND, policy, 6, tie_break) == expected


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "conservative"])
def test_the_order_of_one_second_decides(policy: str) -> None:
    assert starts(IN_ONE_SECOND, policy, 6, "pyss") == {0: 0, 2: 5, 1: 9}
    assert starts(IN_ONE_SECOND, policy, 6, "batch") == {0: 0, 1: 5, 2: 15}
