"""Kueue's plain pod groups: the label `pod-group-name` and the annotation `pod-group-total-count`.

Where Kueue itself is installed its gate `kueue.x-k8s.io/admission` keeps the pods until the quota admits
them; a gated pod is held here like any other.
"""

from collections.abc import Sequence

from muster.dialects.cluster import Cluster, Key
from muster.dialects.limits import queue_in
from muster.dialects.spelling import Spelling, unreported
from muster.dialects.terms import Problem, Terms
from muster.dialects.values import Values, count
from muster.objects.pods import Pod

PREFIX = "kueue.x-k8s.io/"
NAME = PREFIX + "pod-group-name"
TOTAL = PREFIX + "pod-group-total-count"


def claim(pod: Pod) -> str | None:
    """The group by label."""
    return pod.metadata.labels.get(NAME) or None


def terms(key: Key, pods: Sequence[Pod], _cluster: Cluster) -> Terms:
    """All pods say the same total; all of them start together."""
    problems: list[Problem] = []
    totals: dict[int, str] = {}
    labels = pods[0].metadata.labels if pods else {}
    for pod in sorted(pods, key=lambda each: each.metadata.name):
        values = Values(f"pod {pod.metadata.name}", pod.metadata.annotations)
        total = values.read(TOTAL, count, fatal=True)
        problems += values.problems
        if total is not None:
            totals.setdefault(total, pod.metadata.name)
    if len(totals) > 1:
        (one, pod_one), (two, pod_two), *_ = sorted(totals.items())
        message = f"pod {pod_one} has {one}, pod {pod_two} has {two}; give all members the same"
        problems.append(Problem(TOTAL, message, fatal=True))
    if not totals and not problems:
        problems.append(Problem(TOTAL, f"no pod of group {key.name} has it; add the number of pods", True))
    return Terms(
        key.name,
        key.namespace,
        minimum=max(totals, default=1),
        queue=queue_in(labels),
        problems=tuple(problems),
    )


SPELLING = Spelling(name="kueue", claim=claim, terms=terms, report=unreported)
