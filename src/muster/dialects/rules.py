"""A pod's scheduling fields into `model.Rules`: selectors compiled, namespaces named, volumes resolved.

The brain knows labels of nodes and of pods, not namespaces or claims, so what needs other objects is
resolved here. Anything Kubernetes would refuse raises SelectorError or ObjectError; the caller turns it
into a problem of that gang alone.
"""

from collections.abc import Iterable

from muster.dialects.cluster import Cluster
from muster.dialects.volumes import node_term, volume_ties
from muster.model import rules as model
from muster.objects.affinity import (
    Affinity,
    NodeAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from muster.objects.pods import Pod, host_ports
from muster.objects.selectors import Selector
from muster.objects.taints import Toleration, with_default_tolerations

COMPUTE_CLASS = "alibabacloud.com/compute-class"
GPU_MODEL = "alibabacloud.com/gpu-model-series"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TEMPLATE_HASHES = ("pod-template-hash", "controller-revision-hash")

NO_PODS = model.Requirement("muster.sh/none", "In", ())
"""Met by no pod: what an absent selector means."""


def rules_of(pod: Pod, cluster: Cluster, *, spread_by_default: bool = False) -> model.Rules:
    """Where members like this pod may run. `spread_by_default` is for silent replicas."""
    spec = pod.spec
    affinity = spec.affinity or Affinity()
    nodes = affinity.node_affinity or NodeAffinity()
    required = nodes.required_during_scheduling_ignored_during_execution
    near, liked = _pod_terms(affinity.pod_affinity, pod, cluster, away=False)
    away, disliked = _pod_terms(affinity.pod_anti_affinity, pod, cluster, away=True)
    spread = tuple(_spread(each, pod) for each in spec.topology_spread_constraints)
    apart = _apart(pod) if spread_by_default and not spread else ()
    return model.Rules(
        node_selector=tuple(sorted(spec.node_selector.items())),
        nodes_any=tuple(node_term(each) for each in required.node_selector_terms) if required else (),
        nodes_preferred=tuple(
            model.PreferredNodes(each.weight, node_term(each.preference))
            for each in nodes.preferred_during_scheduling_ignored_during_execution
        ),
        tolerations=tuple(_toleration(each) for each in with_default_tolerations(spec.tolerations)),
        host_ports=tuple(model.HostPort(each.port, each.protocol, each.address) for each in host_ports(pod)),
        near=near,
        away=away,
        pods_preferred=(*liked, *disliked, *apart),
        spread=spread,
        volumes=(*volume_ties(pod, cluster), *_class_ties(pod)),
    )


def _toleration(written: Toleration) -> model.Toleration:
    operator = written.operator or "Equal"
    return model.Toleration(written.key, operator, written.value, written.effect)  # type: ignore[arg-type]


def _pod_terms(
    written: object, pod: Pod, cluster: Cluster, *, away: bool
) -> tuple[tuple[model.PodTerm, ...], tuple[model.PreferredPods, ...]]:
    required: Iterable[PodAffinityTerm] = getattr(written, "required_during_scheduling_ignored_during_execution", ())
    preferred: Iterable[WeightedPodAffinityTerm] = getattr(
        written, "preferred_during_scheduling_ignored_during_execution", ()
    )
    return (
        tuple(_pod_term(each, pod, cluster) for each in required),
        tuple(
            model.PreferredPods(each.weight, _pod_term(each.pod_affinity_term, pod, cluster), away)
            for each in preferred
        ),
    )


def _pod_term(written: PodAffinityTerm, pod: Pod, cluster: Cluster) -> model.PodTerm:
    selector = _selector(written.pods(pod.metadata.labels), _namespaces(written, pod, cluster))
    return model.PodTerm(selector, written.topology_key)


def _namespaces(written: PodAffinityTerm, pod: Pod, cluster: Cluster) -> tuple[str, ...]:
    """Names; empty stands for the pod's own, so that a selector of no namespace is the impossible name."""
    own = pod.metadata.namespace
    if not written.namespaces and written.namespace_selector is None:
        return ()
    covered = {name for name, labels in cluster.namespaces() if written.covers_namespace(name, labels, own)}
    return tuple(sorted(covered | set(written.namespaces))) or ("",)


def _selector(selector: Selector, namespaces: tuple[str, ...] = ()) -> model.PodSelector:
    if selector.selects_nothing:
        return model.PodSelector((NO_PODS,), namespaces)
    labels = tuple(model.Requirement(each.key, each.operator, each.values) for each in selector.requirements)
    return model.PodSelector(labels, namespaces)


def _spread(written: TopologySpreadConstraint, pod: Pod) -> model.Spread:
    return model.Spread(
        topology_key=written.topology_key,
        max_skew=written.max_skew,
        selector=_selector(written.pods(pod.metadata.labels)),
        required=written.when_unsatisfiable != "ScheduleAnyway",
        min_domains=written.min_domains,
        honour_affinity=written.node_affinity_policy == "Honor",
        honour_taints=written.node_taints_policy == "Honor",
    )


def _apart(pod: Pod) -> tuple[model.PreferredPods, ...]:
    """Replicas of one template would rather not share a node, and a little rather not a zone."""
    for key in TEMPLATE_HASHES:
        if key in pod.metadata.labels:
            same = model.PodSelector((model.Requirement(key, "In", (pod.metadata.labels[key],)),))
            terms = ((10, HOSTNAME), (5, ZONE))
            return tuple(
                model.PreferredPods(weight, model.PodTerm(same, topology), away=True) for weight, topology in terms
            )
    return ()


def _class_ties(pod: Pod) -> Iterable[tuple[model.NodeTerm, ...]]:
    """A class or card named on the pod is matched where nodes carry the label, else ignored."""
    for key in (COMPUTE_CLASS, GPU_MODEL):
        value = pod.metadata.labels.get(key)
        if value:
            same = model.NodeTerm((model.Requirement(key, "In", (value,)),))
            unlabelled = model.NodeTerm((model.Requirement(key, "DoesNotExist"),))
            yield same, unlabelled
