"""YuniKorn: an application of task groups, said in annotations of its pods.

The pod that starts an application carries `task-groups`, a JSON list of names, minimal counts and
resources; others may be created by it later (a Spark driver makes its executors). YuniKorn holds their room
with placeholder pods; here their seats are held.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.dialects.cluster import Cluster, Key
from muster.dialects.limits import queue_in
from muster.dialects.ranks import role_of
from muster.dialects.spelling import Spelling, unreported
from muster.dialects.terms import Expected, Problem, Terms
from muster.dialects.values import ValueReadError, Values, decoded
from muster.objects.decode import ObjectError, from_object
from muster.objects.pods import Pod

PREFIX = "yunikorn.apache.org/"
APP_ID = PREFIX + "app-id"
TASK_GROUPS = PREFIX + "task-groups"
TASK_GROUP = PREFIX + "task-group-name"
PARAMETERS = PREFIX + "schedulingPolicyParameters"
_FIX = 'write a JSON list such as [{"name": "workers", "minMember": 4, "minResource": {"cpu": "1"}}]'


def claim(pod: Pod) -> str | None:
    """The application, if the pod is in a task group; other pods of an application are tasks of their own."""
    meta = pod.metadata
    if TASK_GROUPS not in meta.annotations and TASK_GROUP not in meta.annotations:
        return None
    return (
        meta.labels.get(APP_ID)
        or meta.annotations.get(APP_ID)
        or meta.labels.get("applicationId")
        or meta.labels.get("spark-app-selector")
        or None
    )


def terms(key: Key, pods: Sequence[Pod], _cluster: Cluster) -> Terms:
    """The task groups of the eldest pod that has them."""
    eldest = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))
    source = next((pod for pod in eldest if TASK_GROUPS in pod.metadata.annotations), None)
    if source is None:
        message = f"no pod of application {key.name} has it; {_FIX}"
        return Terms(key.name, key.namespace, minimum=1, problems=(Problem(TASK_GROUPS, message, True),))
    values = Values(f"pod {source.metadata.name}", source.metadata.annotations)
    groups = values.read(TASK_GROUPS, task_groups, fatal=True) or ()
    present = {role_of(pod) for pod in pods}
    first = role_of(source)
    parameters = dict(_parameters(source.metadata.annotations.get(PARAMETERS, "")))
    timeout = parameters.get("placeholderTimeoutInSeconds", "")
    return Terms(
        name=key.name,
        namespace=key.namespace,
        minimum=max(sum(number for _, number, _ in groups), 1),
        role_minimum={name: number for name, number, _ in groups},
        strict=parameters.get("gangSchedulingStyle") == "Hard",
        timeout=float(timeout) if timeout.isdecimal() and len(timeout) < 10 else None,
        queue=queue_in(source.metadata.labels, source.metadata.annotations),
        expected=tuple(
            Expected(name, number, template, later=name != first and name not in present)
            for name, number, template in groups
        ),
        problems=tuple(values.problems),
    )


def task_groups(text: str) -> tuple[tuple[str, int, Pod], ...]:
    """Names, minimal members and a template of each task group."""
    tree = decoded(text)
    if not isinstance(tree, list) or not tree or not all(isinstance(each, dict) for each in tree):
        raise ValueReadError(_FIX)
    return tuple(_task_group(each) for each in tree)


def _task_group(tree: Mapping[str, Any]) -> tuple[str, int, Pod]:
    name, number = tree.get("name"), tree.get("minMember")
    if not isinstance(name, str) or not name or isinstance(number, bool) or not isinstance(number, int):
        raise ValueReadError(_FIX)
    if number < 1:
        raise ValueReadError(f"minMember of {name} must be at least 1")
    spec = {
        key: tree[key]
        for key in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
        if key in tree
    }
    spec["containers"] = [{"name": "task", "resources": {"requests": tree.get("minResource") or {}}}]
    annotations = {TASK_GROUP: name}
    try:
        return name, number, from_object({"metadata": {"annotations": annotations}, "spec": spec}, Pod)
    except ObjectError as error:
        raise ValueReadError(f"task group {name}: {error}") from error


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for word in text.split():
        name, equals, value = word.partition("=")
        if equals:
            yield name, value


SPELLING = Spelling(name="yunikorn", claim=claim, terms=terms, report=unreported)
