"""How long a gang may run, how urgent it is, and in which queue: what many dialects say in the same words."""

from collections.abc import Mapping, Sequence

from muster.dialects.cluster import Cluster, Item
from muster.dialects.terms import Terms
from muster.dialects.values import ValueReadError, count
from muster.dialects.wishes import Wishes
from muster.objects.pods import Pod

MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
_QUEUES = (
    "kueue.x-k8s.io/queue-name",
    "kai.scheduler/queue",
    "yunikorn.apache.org/queue",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "quota.scheduling.koordinator.sh/name",
)


class PriorityClass(Item, frozen=True):
    """A PriorityClass: what a name is worth."""

    value: int = 0
    global_default: bool = False


def longest_run(terms: Terms, wished: Wishes, pods: Sequence[Pod]) -> float | None:
    """The least of all stated limits; pods limit the gang when every one of them has a limit."""
    limits = [wished.walltime, terms.limit, *(exec_time(pod.metadata.labels) for pod in pods)]
    alive = [pod.spec.active_deadline_seconds for pod in pods if not pod.is_terminal]
    stated = [each for each in alive if each is not None]
    if stated and len(stated) == len(alive):
        limits.append(float(max(stated)))
    return min((each for each in limits if each is not None), default=None)


def exec_time(labels: Mapping[str, str]) -> float | None:
    """Kueue's run time limit, which stands on jobs and on pods alike."""
    try:
        return float(count(labels[MAX_EXEC_TIME])) if MAX_EXEC_TIME in labels else None
    except ValueReadError:
        return None


def least(*limits: float | None) -> float | None:
    """The smallest of the limits that were stated."""
    return min((float(each) for each in limits if each is not None), default=None)


def queue_in(*maps: Mapping[str, str]) -> str:
    """The queue by any of the labels and annotations people carry over from elsewhere."""
    return next((texts[key] for texts in maps for key in _QUEUES if texts.get(key)), "")


def priority_of(terms: Terms, pods: Sequence[Pod], cluster: Cluster) -> int:
    """The group's, else the pods', else what the class of the owner's template is worth."""
    if terms.priority is not None:
        return terms.priority
    if pods:
        return max(pod.spec.priority for pod in pods)
    names = {each.template.spec.priority_class_name for each in terms.expected}
    return max((class_value(name, cluster) for name in names), default=0)


def class_value(name: str, cluster: Cluster) -> int:
    """What a priority class is worth; without a name that of the cluster's default."""
    classes = list(cluster.all(PriorityClass, "scheduling.k8s.io", "PriorityClass", ""))
    for each in classes:
        if each.metadata.name == name or (not name and each.global_default):
            return each.value
    return 0
