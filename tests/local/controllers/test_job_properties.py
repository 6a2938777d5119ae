"""Whatever happens to a Job's pods, in whatever order: never too many of them, and each outcome counted
once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers import job as jobs
from muster.local.controllers.job_indexes import index_of, parse, render
from tests.local.controllers.making import JobWorld

STEPS = st.lists(
    st.tuples(st.sampled_from(["place", "succeed", "fail", "delete", "confirm", "sleep", "sync"]), st.integers(0, 9)),
    max_size=40,
)


@dataclass
class Story:
    """What the test did to the pods, in its own account."""

    world: JobWorld
    failed: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    indexes: set[int] = field(default_factory=set)

    def do(self, step: str, pick: int) -> None:
        w = self.world
        if step == "sync":
            w.run()
        elif step == "sleep":
            w.sleep(10 * 2**pick)
        elif step == "confirm":
            self._each([pod for pod in w.pods if f.going(pod)], pick, w.confirm)
        elif alive := w.active:
            self._act(step, alive[pick % len(alive)])

    def _each(self, pods: list[Object], pick: int, act: object) -> None:
        if pods and callable(act):
            act(pods[pick % len(pods)])

    def _act(self, step: str, pod: Object) -> None:
        w, uid = self.world, f.uid(pod)
        if step == "place":
            w.place(pod)
        elif step == "succeed":
            w.end(pod)
            self.succeeded.add(uid)
            if (index := index_of(pod)) is not None:
                self.indexes.add(index)
        elif step == "fail":
            w.end(pod, code=1)
            self.failed.add(uid)
        else:
            w.memory.delete("pods", "default", f.name(pod))
            self.failed.add(uid)


def play(spec: dict[str, object], steps: list[tuple[str, int]]) -> Story:
    story = Story(JobWorld(dict(spec)))
    story.world.run()
    for step, pick in steps:
        if not jobs.finished(story.world.job) and "FailureTarget" not in story.world.conditions():
            story.do(step, pick)
            assert len(story.world.active) <= story.world.job["spec"]["parallelism"]
    story.world.run()
    return story


def counted(story: Story) -> tuple[int, int]:
    status = story.world.status
    return status.get("succeeded", 0), status.get("failed", 0)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), STEPS)
def test_every_outcome_counts_once(parallelism: int, completions: int, steps: list[tuple[str, int]]) -> None:
    story = play({"parallelism": parallelism, "completions": completions, "backoffLimit": 1000}, steps)
    if not jobs.finished(story.world.job):
        assert counted(story) == (len(story.succeeded), len(story.failed))
    assert story.world.most_active <= parallelism


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), STEPS)
def test_every_index_completes_once_and_the_job_ends(completions: int, steps: list[tuple[str, int]]) -> None:
    spec = {"parallelism": 3, "completions": completions, "completionMode": "Indexed", "backoffLimit": 1000}
    story = play(spec, steps)
    w = story.world
    assert parse(w.status.get("completedIndexes", ""), completions) == story.indexes
    for _ in range(200):
        if jobs.finished(w.job):
            break
        for pod in w.pods:
            if f.going(pod):
                w.confirm(pod)
            elif f.active(pod):
                w.end(pod)
        w.sleep(600)
        w.run()
    assert w.conditions()["Complete"] == "CompletionsReached"
    assert w.status["succeeded"] == completions
    assert w.status.get("failed", 0) == len(story.failed)
    assert all("finalizers" not in f.meta(pod) for pod in w.pods)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3), STEPS)
def test_a_job_fails_exactly_when_more_failed_than_allowed(limit: int, steps: list[tuple[str, int]]) -> None:
    story = play({"parallelism": 2, "completions": 100, "backoffLimit": limit}, steps)
    assert ("FailureTarget" in story.world.conditions()) == (len(story.failed) > limit)


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_being_written(indexes: set[int]) -> None:
    assert parse(render(indexes), 61) == indexes


def test_indexes_are_written_as_kubernetes_does() -> None:
    assert render({0, 2, 3, 4, 7, 8}) == "0,2-4,7,8"
