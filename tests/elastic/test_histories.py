"""Invariants I1 to I10 over thousands of histories of everything that can happen to a job."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muster.elastic.protocol import Stale
from tests.elastic.histories import SAMPLES, Pod, World, replay, stale_status

which = st.integers(0, 5)


class Histories(RuleBasedStateMachine):
    world: World

    @initialize(whole=st.booleans(), replicas=st.integers(1, 2), pods=st.integers(1, 4))
    def begin(self, whole: bool, replicas: int, pods: int) -> None:
        self.world = World(whole, replicas)
        for i in range(pods):
            self.world.join(f"d{i % 3}")
        for pod in self.world.pods.values():
            pod.ready = True
        for _ in range(4):
            self.world.talk()

    def pick(self, i: int) -> Pod | None:
        alive = [p for p in self.world.pods.values() if p.alive]
        return alive[i % len(alive)] if alive else None

    @rule(seconds=st.sampled_from([0.1, 0.5, 2.0]))
    def talk(self, seconds: float) -> None:
        self.world.talk(seconds)

    @rule(sealed=st.integers(0, 4))
    def train(self, sealed: int) -> None:
        self.world.step(sealed)

    @rule()
    def train_saved(self) -> None:
        for _ in range(3):
            self.world.talk(0.2)
            self.world.step(9)

    @rule(torn=which, i=which)
    def die_inside_a_step(self, torn: int, i: int) -> None:
        """One has applied the step, another one dies before it has."""
        seats = self.world.seats()
        if len(seats) > 1:
            self.world.step(0, torn=torn)
            victim = seats[(torn + 1 + i % (len(seats) - 1)) % len(seats)]
            self.world.kill_worker(victim, spare=bool(i % 2))

    @rule(domain=st.sampled_from(["d0", "d1", "d2", "d3"]))
    def join(self, domain: str) -> None:
        if len(self.world.pods) < 12:
            self.world.join(domain)

    @rule(i=which)
    def become_ready(self, i: int) -> None:
        if pod := self.pick(i):
            pod.ready = True

    @rule(i=which, spare=st.booleans())
    def kill_worker(self, i: int, spare: bool) -> None:
        if pod := self.pick(i):
            self.world.kill_worker(pod, spare)

    @rule(i=which)
    def kill_pod(self, i: int) -> None:
        if pod := self.pick(i):
            self.world.kill_pod(pod)

    @rule(i=which)
    def freeze_worker(self, i: int) -> None:
        """Until its agent notices, and ends it."""
        pod = self.pick(i)
        if pod and pod.ready and not pod.frozen:
            pod.worker_frozen = True
            self.world.talk(1.0)
            self.world.kill_worker(pod, spare=False)

    @rule(i=which, cut=st.booleans())
    def freeze_or_cut_off(self, i: int, cut: bool) -> None:
        if pod := self.pick(i):
            pod.frozen, pod.cut_off = pod.frozen or not cut, pod.cut_off or cut
            self.world.lost.add(pod.domain)

    @rule(i=which)
    def come_back(self, i: int) -> None:
        if pod := self.pick(i):
            self.world.thaw(pod)

    @rule(i=which)
    def preempt(self, i: int) -> None:
        pod = self.pick(i)
        if pod and sum(p.alive and not p.leaving for p in self.world.pods.values()) > 1:
            pod.leaving = True
            self.world.lost.add(pod.domain)

    @rule(size=st.integers(1, 5))
    def resize(self, size: int) -> None:
        self.world.resize(size)

    @rule()
    def authority_crashes(self) -> None:
        self.world.authority = None

    @rule()
    def authority_starts(self) -> None:
        self.world.start_authority()

    @precondition(lambda self: self.world.authority is not None)
    @rule(i=which)
    def an_old_life_speaks(self, i: int) -> None:
        pod = self.pick(i)
        authority = self.world.authority
        if pod and authority and pod.id in authority.peers and authority.peers[pod.id].status.member.life == pod.life:
            with pytest.raises(Stale):
                authority.hear(stale_status(pod), self.world.now)

    @invariant()
    def time_is_accounted_for(self) -> None:
        if hasattr(self, "world"):
            self.world.released_safely()

    @invariant()
    def cursors_belong_to_their_models(self) -> None:
        if hasattr(self, "world"):
            for pod in self.world.pods.values():
                if pod.model is not None:
                    assert pod.model.cursor == replay(pod.model)

    def teardown(self) -> None:
        """Left in peace, the job goes on, and every sample of every finished pass was used exactly once."""
        if not hasattr(self, "world"):
            return
        self.world.resize(4)
        self.world.settle()
        models = {p.model for p in self.world.seats()}
        assert len(models) == 1, [(p.id, p.alive, p.parked, p.epoch) for p in self.world.pods.values()]
        model = models.pop()
        assert model is not None and model.step > 0
        used = Counter((turn, i) for turn, start, stop in model.seen for i in range(start, stop))
        assert set(used.values()) == {1}
        for turn in range(model.cursor.turn):
            assert sum(t == turn for t, _ in used) == SAMPLES


Histories.TestCase.settings = settings(
    max_examples=1000,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TestHistories = Histories.TestCase
