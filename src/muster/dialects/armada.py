"""Armada: gangs of pods by annotations with an id, an exact number of members and a node label they share."""

from collections.abc import Sequence

from muster.dialects.cluster import Cluster, Key
from muster.dialects.spelling import Spelling, unreported
from muster.dialects.terms import Problem, Terms
from muster.dialects.values import Values, count
from muster.objects.pods import Pod

PREFIX = "armadaproject.io/"
ID = PREFIX + "gangId"
CARDINALITY = PREFIX + "gangCardinality"
UNIFORMITY = PREFIX + "gangNodeUniformityLabel"


def claim(pod: Pod) -> str | None:
    """The gang by annotation."""
    return pod.metadata.annotations.get(ID) or None


def terms(key: Key, pods: Sequence[Pod], _cluster: Cluster) -> Terms:
    """Members repeat the same cardinality; the largest is taken and differences are refused."""
    problems: list[Problem] = []
    found: dict[int, str] = {}
    uniform = ""
    for pod in sorted(pods, key=lambda each: each.metadata.name):
        values = Values(f"pod {pod.metadata.name}", pod.metadata.annotations)
        number = values.read(CARDINALITY, count, fatal=True)
        problems += values.problems
        uniform = uniform or pod.metadata.annotations.get(UNIFORMITY, "")
        if number is not None:
            found.setdefault(number, pod.metadata.name)
    if len(found) > 1:
        (one, pod_one), (two, pod_two), *_ = sorted(found.items())
        message = f"pod {pod_one} has {one}, pod {pod_two} has {two}; give all members the same"
        problems.append(Problem(CARDINALITY, message, fatal=True))
    if not found and not problems:
        problems.append(Problem(CARDINALITY, f"no pod of gang {key.name} has it; add the number", fatal=True))
    return Terms(
        key.name,
        key.namespace,
        minimum=max(found, default=1),
        required_topology=uniform,
        problems=tuple(problems),
    )


SPELLING = Spelling(name="armada", claim=claim, terms=terms, report=unreported)
