"""Contradictions among members: what can never be right, told with the field and the fix."""

from collections.abc import Iterable, Iterator, Sequence

from muster.dialects.cluster import Cluster
from muster.dialects.rules import COMPUTE_CLASS, GPU_MODEL
from muster.dialects.terms import Problem, Terms
from muster.dialects.volumes import shared_single_claims
from muster.objects.pods import Pod

DEFAULT_CLASS = "general-purpose"
GPU_CLASSES = frozenset({"gpu", "gpu-hpn"})


def contradictions(terms: Terms, pods: Sequence[Pod], cluster: Cluster) -> Iterator[Problem]:
    """Why these pods cannot be one gang. `pods` are those that have not ended."""
    yield from _one_value("spec.schedulerName", ((each, each.spec.scheduler_name) for each in pods))
    yield from _priorities(terms, pods)
    yield from _one_value("spec.preemptionPolicy", ((each, each.spec.preemption_policy) for each in pods))
    yield from compute_classes(pods)
    yield from shared_single_claims(pods, cluster)


def compute_classes(pods: Sequence[Pod]) -> Iterator[Problem]:
    """All of one compute class; a class with cards names the card."""
    labelled = [each for each in pods if COMPUTE_CLASS in each.metadata.labels]
    if labelled:
        classes = ((each, each.metadata.labels.get(COMPUTE_CLASS, DEFAULT_CLASS)) for each in pods)
        yield from _one_value(f"metadata.labels[{COMPUTE_CLASS}]", classes)
    for pod in sorted(labelled, key=lambda each: each.metadata.name):
        compute_class = pod.metadata.labels[COMPUTE_CLASS]
        if compute_class in GPU_CLASSES and not pod.metadata.labels.get(GPU_MODEL):
            field = f"metadata.labels[{GPU_MODEL}]"
            message = f"pod {pod.metadata.name} of class {compute_class} names no card; add the label"
            yield Problem(field, message, fatal=True)
            return


def _priorities(terms: Terms, pods: Sequence[Pod]) -> Iterator[Problem]:
    if terms.priority is None:
        yield from _one_value("spec.priority", ((each, str(each.spec.priority)) for each in pods))
        return
    for pod in sorted(pods, key=lambda each: each.metadata.name):
        if pod.spec.priority != terms.priority:
            message = (
                f"pod {pod.metadata.name} has {pod.spec.priority}, its group {terms.name} has "
                f"{terms.priority}; give both the same priorityClassName"
            )
            yield Problem("spec.priority", message, fatal=True)
            return


def _one_value(field: str, values: Iterable[tuple[Pod, str]]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for pod, value in values:
        first[value] = min(first.get(value, pod.metadata.name), pod.metadata.name)
    if len(first) > 1:
        (one, pod_one), (two, pod_two), *_ = sorted(first.items())
        message = f"pod {pod_one} has {one}, pod {pod_two} has {two}; give all members of a gang the same"
        yield Problem(field, message, fatal=True)
