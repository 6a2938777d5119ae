"""The time machine: the events of a workload, one after the other, through the planning cycle that runs live.

Two orders of events at one instant are known. `batch` is what a live scheduler sees: everything that ended, then
everything that arrived, then one cycle. `pyss` is that of the simulator of the same name, whose published results
are exact per job: room that is due is back, then each arrival with a cycle of its own, then each end with another.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from time import perf_counter

from muster.model.gang import Gang
from muster.model.node import Node
from muster.model.topology import Topology
from muster.plan.actions import Bind, Plan, Stop
from muster.plan.cycle import cycle
from muster.plan.explain import explain
from muster.plan.policy import Policy, parse
from muster.plan.state import State
from muster.sim.outcome import History, Outcome
from muster.sim.workload import PER_UNIT, Job, Workload, counted

Progress = Callable[[int, int], None]

TIE_BREAKS = ("batch", "pyss")
REPORT_EVERY = 256


def simulate(
    workload: Workload,
    nodes: Iterable[Node],
    topology: Topology = Topology(),
    policy: str | Policy = "easy",
    *,
    clairvoyant: bool = False,
    tie_break: str = "batch",
    progress: Progress | None = None,
) -> History:
    """Run a workload to its end. `clairvoyant` tells the scheduler how long each job will really run."""
    chosen = parse(policy) if isinstance(policy, str) else policy
    machines = list(nodes)
    engine = (Pyss if tie_break == "pyss" else Batch)(workload, State(machines, topology, chosen), clairvoyant)
    began = perf_counter()
    engine.run(progress)
    seconds = perf_counter() - began
    unit = counted(name for node in machines for name in node.capacity)
    capacity = sum(node.capacity.get(unit, 0) for node in machines) // PER_UNIT.get(unit, 1)
    return History(
        workload,
        chosen.name,
        tie_break,
        engine.outcomes,
        capacity,
        unit,
        seconds,
        engine.cycles,
        dict(engine.fired),
    )


class Engine:
    """Events in, plans out, outcomes kept. What differs between orders of events is in `instant`."""

    def __init__(self, workload: Workload, state: State, clairvoyant: bool) -> None:
        self.state = state
        self.outcomes = [Outcome(job, None, None) for job in workload.jobs]
        self.gangs = [seen(job, clairvoyant) for job in workload.jobs]
        self.by_uid = dict(zip((gang.uid for gang in self.gangs), self.outcomes, strict=True))
        self.arrivals = sorted(range(len(self.gangs)), key=lambda i: self.gangs[i].submitted)
        self.ends: list[tuple[float, int, str]] = []
        self.starts = 0
        self.cycles = 0
        self.now = 0.0
        self.fired: Counter[str] = Counter()

    def run(self, progress: Progress | None) -> None:
        coming = [self.gangs[i] for i in self.arrivals]
        times = [gang.submitted for gang in coming]
        at, total = 0, len(coming)
        while at < total or self.ends:
            ends = self.ends
            time = times[at] if at < total else inf
            if ends and ends[0][0] < time:
                time = ends[0][0]
            time = self.earlier_wake(time)
            first = at
            while at < total and times[at] <= time:
                at += 1
            over = []
            while ends and ends[0][0] <= time:
                over.append(heappop(ends)[2])
            self.now = time
            self.instant(time, over, coming[first:at])
            if progress is not None and self.cycles % REPORT_EVERY == 0:
                progress(at, total)
        self._explain_the_rest()

    def instant(self, time: float, over: list[str], arrived: list[Gang]) -> None:
        raise NotImplementedError

    def earlier_wake(self, time: float) -> float:
        """The next event, or the moment before it at which the plan wants to be looked at again."""
        return time

    def plan(self, now: float) -> None:
        self.cycles += 1
        plan, _ = cycle(self.state, now)
        if plan.actions:
            self.carry_out(plan, now)

    def carry_out(self, plan: Plan, now: float) -> None:
        for action in plan.actions:
            if isinstance(action, Bind):
                self.fired[action.why] += 1
                self._bound(action, now)
            elif isinstance(action, Stop):
                self.fired["stop"] += 1
                self._stopped(action, now)
            else:
                self.fired["reserve"] += 1

    def _bound(self, action: Bind, now: float) -> None:
        outcome = self.by_uid[action.gang.uid]
        for seats in action.seats:
            outcome.nodes += tuple(zip(seats.nodes, seats.counts, strict=True))
        if action.complete and outcome.started is None:
            outcome.started = now
            outcome.backfilled = action.why == "backfill"
            self.starts += 1
            runtime = outcome.job.runtime
            limit = action.gang.walltime
            end = now + (runtime if limit is None or runtime < limit else limit)
            outcome.finished = end
            heappush(self.ends, (end, self.starts, action.gang.uid))

    def _stopped(self, action: Stop, now: float) -> None:
        """Its owner starts it over: the same gang waits again from now."""
        outcome = self.by_uid[action.gang.uid]
        outcome.lost += now - (outcome.started or now)
        outcome.restarts += 1
        outcome.started = outcome.finished = None
        outcome.nodes = ()
        self.ends = [end for end in self.ends if end[2] != action.gang.uid]
        self.state.finish(action.gang.uid, now)
        self.state.submit(action.gang)

    def _explain_the_rest(self) -> None:
        for waiting in explain(self.state, self.now):
            self.by_uid[waiting.uid].reason = waiting.reason
        for uid, holding in self.state.running.items():
            missing = sum(holding.missing())
            if missing:
                self.by_uid[uid].reason = f"holds {holding.members()} members and waits for {missing} more"


class Batch(Engine):
    def instant(self, time: float, over: list[str], arrived: list[Gang]) -> None:
        for uid in over:
            self.state.finish(uid, time)
        for gang in arrived:
            self.state.submit(gang)
        self.plan(time)

    def earlier_wake(self, time: float) -> float:
        wake = self.state.wake_at(self.now) if self.cycles else None
        return time if wake is None or wake > time else wake


class Pyss(Engine):
    def __init__(self, workload: Workload, state: State, clairvoyant: bool) -> None:
        super().__init__(workload, state, clairvoyant)
        policy = state.policy
        self.looks_if_it_fits = policy.reservations == 1 and policy.scan is None

    def instant(self, time: float, over: list[str], arrived: list[Gang]) -> None:
        state = self.state
        if arrived or len(over) > 1:
            for uid in over:
                if state.running[uid].end <= time:
                    state.expire(uid, time)
        for gang in arrived:
            state.submit(gang)
            if not self.looks_if_it_fits or state.has_room_for(gang.uid):
                self.plan(time)
        for uid in over:
            state.finish(uid, time)
            self.plan(time)


def seen(job: Job, clairvoyant: bool) -> Gang:
    """The gang as the scheduler is told of it."""
    return replace(job.gang, walltime=job.runtime, estimate=None) if clairvoyant else job.gang
