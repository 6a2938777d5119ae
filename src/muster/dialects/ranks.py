"""Which part of a gang a pod plays, and its place among those of its part.

Controllers say it in labels of their own; what is read here is the union, so that members of every owner
are named and ordered as their users know them, and rank order can follow node order.
"""

import re

from muster.objects.pods import Pod

MEMBER = "member"

_ROLE_LABELS = (
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "kai.scheduler/subgroup-name",
    "volcano.sh/task-spec",
    "ray.io/group",
    "kueue.x-k8s.io/pod-group-role",
)
_ROLE_ANNOTATIONS = ("yunikorn.apache.org/task-group-name", "volcano.sh/task-spec")
_INDEX_LABELS = (
    "jobset.sigs.k8s.io/job-index",
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "volcano.sh/task-index",
    "kueue.x-k8s.io/pod-group-pod-index",
    "ray.io/replica-index",
    "apps.kubernetes.io/pod-index",
)
_INDEX_ANNOTATIONS = (
    "batch.kubernetes.io/job-completion-index",
    "volcano.sh/task-index",
    "gang.scheduling.koordinator.sh/network-topology-index",
)
_LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
_DIGITS = re.compile(r"([0-9]+)")

Rank = tuple[tuple[int, ...], tuple[tuple[str, int], ...]]


def role_of(pod: Pod) -> str:
    """The role by the owner's labels; without any all are members."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if _LWS_WORKER in labels:
        return "leader" if labels[_LWS_WORKER] == "0" else "worker"
    for key in _ROLE_LABELS:
        if labels.get(key):
            return labels[key].lower()
    for key in _ROLE_ANNOTATIONS:
        if annotations.get(key):
            return annotations[key]
    return MEMBER


def rank_of(pod: Pod) -> Rank:
    """Sorts members of a role: by the index their controller gave, then by name, numbers as numbers."""
    texts = [pod.metadata.labels.get(key) for key in _INDEX_LABELS]
    texts += [pod.metadata.annotations.get(key) for key in _INDEX_ANNOTATIONS]
    # Those without an index come after those with one, as Koordinator has it.
    index = tuple(_number(text) for text in texts)
    return index, _natural(pod.metadata.name)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else 1 << 31


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    parts = _DIGITS.split(name)
    numbers = [int(each) if len(each) < 20 else 0 for each in parts[1::2]]
    return tuple(zip(parts[::2], [*numbers, -1], strict=True))
