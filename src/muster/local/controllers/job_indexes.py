"""Completion indexes of an Indexed Job: read from pods, written to status, chosen for new pods."""

from __future__ import annotations

from collections.abc import Iterable

from muster.local.api.access import Object
from muster.local.controllers import fields as f

INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


def indexed(job: Object) -> bool:
    return f.spec(job).get("completionMode") == "Indexed"


def index_of(pod: Object) -> int | None:
    """The completion index a pod stands for; None when it says none that is a number."""
    text = f.notes(pod).get(INDEX, "")
    return int(text) if text.isdigit() else None


def parse(text: str, below: int) -> set[int]:
    """`0,2-4` as a set, without what an elastic Job no longer has."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first) + 1, below)))
    return {index for index in found if index < below}


def render(indexes: Iterable[int]) -> str:
    """A set as `0,2-4`: the way status.completedIndexes is written."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a},{b}" for a, b in runs)


def valid_index(job: Object, pod: Object) -> bool:
    """Whether a pod's outcome matters: always, unless the Job is Indexed and the index is not one of its
    own.
    """
    if not indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < f.spec(job).get("completions", 0)


def wanted_indexes(job: Object, taken: set[int], count: int) -> list[int]:
    """The lowest `count` indexes nobody has."""
    found: list[int] = []
    for index in range(f.spec(job).get("completions", 0)):
        if len(found) == count:
            break
        if index not in taken:
            found.append(index)
    return found


def superfluous(job: Object, pods: Iterable[Object]) -> list[Object]:
    """Active pods of an index that does not exist, or that another pod already stands for."""
    seen: set[int] = set()
    extra = []
    for pod in sorted(pods, key=f.removal_order, reverse=True):
        index = index_of(pod)
        if index is None or index in seen or not valid_index(job, pod):
            extra.append(pod)
        else:
            seen.add(index)
    return extra
