"""Owners and pods for controller tests, and one owner's world in which its controller is run step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.local.api.access import Object
from muster.local.clock import stamp
from muster.local.controllers import fields as f
from muster.local.controllers import job as jobs
from muster.local.controllers.acting import Actor, RefusedError
from muster.local.controllers.job_count import Failures
from muster.local.controllers.mirror import Mirror
from muster.local.events import Recorder
from tests.local.cluster import Memory

TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]},
}


def make_job(**spec: Any) -> Object:
    template = spec.pop("template", TEMPLATE)
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template} | spec
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def terminated(code: int, at: float) -> Object:
    state = {"terminated": {"exitCode": code, "finishedAt": stamp(at), "reason": "Error" if code else "Completed"}}
    return {"name": "main", "state": state, "restartCount": 0}


@dataclass
class JobWorld:
    """A Job, its pods and nobody else; the test is the scheduler, the kubelet and the user."""

    spec: dict[str, Any] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    failures: Failures = field(default_factory=Failures)
    most_active: int = 0
    refused: str = ""
    watching: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.memory.create(jobs.RESOURCE, make_job(**self.spec))
        recorder = Recorder(self.memory, self.memory.clock, "job-controller")
        self.actor = Actor(self.memory, Mirror(), recorder)

    @property
    def job(self) -> Object:
        return self.memory.get(jobs.RESOURCE, "default", "train")

    @property
    def status(self) -> Object:
        return f.status(self.job)

    @property
    def pods(self) -> list[Object]:
        return self.memory.list("pods", "default")

    @property
    def active(self) -> list[Object]:
        return [pod for pod in self.pods if f.active(pod)]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["message"]) for event in self.memory.list("events")]

    def conditions(self) -> dict[str, str]:
        return {c["type"]: c["reason"] for c in f.conditions(self.job) if c["status"] == "True"}

    def run(self) -> None:
        """Sync until the Job has nothing left to do now."""
        for _ in range(50):
            before = self.memory.writes
            actions, self.failures = jobs.sync(self.job, self.pods, self.failures, self.memory.clock.now())
            try:
                self.actor.act(actions)
                self.refused = ""
            except RefusedError as error:
                self.refused = str(error)
            self.most_active = max(self.most_active, len(self.active))
            if self.memory.writes == before or self.refused or not self._alive():
                return
        raise AssertionError("the Job never comes to rest")

    def _alive(self) -> bool:
        return (jobs.RESOURCE, "default", "train") in self.memory.objects

    def sleep(self, seconds: float) -> None:
        self.memory.clock.step(self.memory.clock.now() + seconds)

    def change(self, **spec: Any) -> None:
        self.memory.patch(jobs.RESOURCE, "default", "train", {"spec": spec})

    def place(self, pod: Object) -> None:
        self.memory.patch("pods", "default", f.name(pod), {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})

    def end(self, pod: Object, code: int = 0, **status: Any) -> None:
        phase = "Failed" if code else "Succeeded"
        main = terminated(code, self.memory.clock.now())
        status = {"phase": phase, "containerStatuses": [main], **status}
        self.memory.patch("pods", "default", f.name(pod), {"status": status})

    def confirm(self, pod: Object) -> None:
        """The kubelet lets go of a pod that was being deleted."""
        self.memory.delete("pods", "default", f.name(pod), grace=0)
