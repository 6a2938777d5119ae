"""A rollout keeps its promises whatever the pods do: never too many, never too few that are available, and
it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.local.api.access import Object
from muster.local.controllers import deployment as deployments
from muster.local.controllers import fields as f
from muster.local.controllers.acting import Actor
from muster.local.controllers.mirror import Mirror
from muster.local.controllers.replicaset import RESOURCE as REPLICASETS
from muster.local.events import Recorder
from tests.local.cluster import Memory


@dataclass
class Rollout:
    """A Deployment whose ReplicaSets are played by the test: they get pods ready one by one, in any order."""

    replicas: int
    surge: int | str
    unavailable: int | str
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        rolling = {"maxSurge": self.surge, "maxUnavailable": self.unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        spec = {"replicas": self.replicas, "strategy": strategy, "selector": {"matchLabels": {"a": "b"}}}
        metadata = {"name": "web", "namespace": "default"}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        self.memory.create(deployments.RESOURCE, {**body, "spec": {**spec, "template": template("1")}})
        recorder = Recorder(self.memory, self.memory.clock, "deployment-controller")
        self.actor = Actor(self.memory, Mirror(), recorder)

    @property
    def deployment(self) -> Object:
        return self.memory.get(deployments.RESOURCE, "default", "web")

    @property
    def sets(self) -> list[Object]:
        return self.memory.list(REPLICASETS, "default")

    def sync(self) -> None:
        for _ in range(30):
            before = self.memory.writes
            self.actor.act(deployments.sync(self.deployment, self.sets, self.memory.clock.now()))
            if self.memory.writes == before:
                return
        raise AssertionError("the Deployment never comes to rest")

    def step(self, chance: Random) -> bool:
        """One ReplicaSet takes one step towards its size; False when all are there."""
        todo = []
        for rs in self.sets:
            size, now, well = (
                f.spec(rs)["replicas"],
                f.status(rs).get("replicas", 0),
                f.status(rs).get("readyReplicas", 0),
            )
            if now < size:
                todo.append((rs, now + 1, well))
            elif now > size:
                todo.append((rs, now - 1, min(well, now - 1)))
            elif well < now:
                todo.append((rs, now, well + 1))
        if not todo:
            return False
        rs, now, well = chance.choice(todo)
        status = {"replicas": now, "readyReplicas": well, "availableReplicas": well}
        self.memory.patch(REPLICASETS, "default", f.name(rs), {"status": status})
        return True

    def total(self, key: str) -> int:
        return sum(f.status(rs).get(key, 0) for rs in self.sets)

    def asked(self) -> int:
        return sum(f.spec(rs)["replicas"] for rs in self.sets)


def template(image: str) -> Object:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_rollout_keeps_to_its_bounds_and_ends(replicas: int, surge: int, unavailable: int, chance: Random) -> None:
    r = Rollout(replicas, surge, unavailable)
    r.sync()
    while r.step(chance):
        r.sync()
    for image in ("2", "3"):
        r.memory.patch(deployments.RESOURCE, "default", "web", {"spec": {"template": template(image)}})
        r.sync()
        least = replicas - (unavailable if surge or unavailable else 1)
        while r.step(chance):
            r.sync()
            assert r.asked() <= replicas + surge
            assert r.total("availableReplicas") >= min(least, replicas)
        sizes = {f.spec(rs)["template"]["spec"]["containers"][0]["image"]: f.spec(rs)["replicas"] for rs in r.sets}
        assert sizes[image] == replicas
        assert sum(sizes.values()) == replicas
    reasons = {c["type"]: c["reason"] for c in f.conditions(r.deployment)}
    assert reasons == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}


def test_a_stuck_rollout_is_told_when_its_deadline_has_passed() -> None:
    r = Rollout(2, "25%", "25%")
    r.sync()
    r.sync()
    r.memory.clock.step(r.memory.clock.now() + 601)
    r.sync()
    progressing = f.condition(r.deployment, "Progressing")
    assert progressing
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
