"""Scheduling fields of pods as rules for the brain, with namespaces and volumes resolved."""

from typing import Any

import pytest

from muster.dialects import acts
from muster.dialects.rules import NO_PODS, rules_of
from muster.dialects.volumes import shared_single_claims, volume_ties, waits_for_volume
from muster.model.rules import HostPort, NodeTerm, PodSelector, Requirement, Rules
from muster.objects.decode import from_object
from muster.objects.pods import Pod
from muster.objects.selectors import SelectorError
from tests.dialects.scenes import Scene

WORLD = """
{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: a}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {team: b}}}
"""


def rules(spec: dict[str, Any], world: Scene | None = None, labels: dict[str, str] | None = None) -> Rules:
    pod = {"metadata": {"name": "p", "namespace": "default", "labels": labels or {}}, "spec": spec}
    return rules_of(from_object(pod, Pod), (world or Scene(WORLD)).cluster())


def test_an_empty_pod_goes_anywhere_but_to_nodes_that_went_away_long_ago() -> None:
    found = rules({})
    assert [each.key for each in found.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert found == Rules(tolerations=found.tolerations)


def test_selectors_affinity_tolerations_and_ports() -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "Gt", "values": ["4"]}]}
    found = rules(
        {
            "nodeSelector": {"b": "2", "a": "1"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, {}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}],
                }
            },
            "tolerations": [
                {"key": "t", "operator": "Exists"},
                {"key": "u", "value": "v", "effect": "NoSchedule"},
            ],
            "containers": [{"ports": [{"hostPort": 80}, {"containerPort": 81}]}],
        }
    )
    gpus = NodeTerm(labels=(Requirement("gpu", "Gt", ("4",)),))
    assert found.node_selector == (("a", "1"), ("b", "2"))
    assert found.nodes_any == (gpus, NodeTerm())
    assert [(each.weight, each.term) for each in found.nodes_preferred] == [(5, gpus)]
    assert [(each.key, each.operator) for each in found.tolerations[:2]] == [("t", "Exists"), ("u", "Equal")]
    assert found.host_ports == (HostPort(80),)


def pod_term(**more: object) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, **more}


@pytest.mark.parametrize(
    ("term", "namespaces"),
    [
        (pod_term(), ()),
        (pod_term(namespaces=["far"]), ("far",)),
        (pod_term(namespaceSelector={"matchLabels": {"team": "b"}}), ("other",)),
        (pod_term(namespaceSelector={}), ("default", "other")),
        (pod_term(namespaceSelector={"matchLabels": {"team": "nobody"}}), ("",)),
    ],
)
def test_namespaces_of_pod_terms_are_named(term: dict[str, Any], namespaces: tuple[str, ...]) -> None:
    found = rules({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    assert found.away[0].selector.namespaces == namespaces
    assert found.away[0].topology_key == "zone"


def test_an_absent_selector_selects_no_pod_and_keys_of_the_pods_own_are_filled_in() -> None:
    bare = {"topologyKey": "zone"}
    own = pod_term(matchLabelKeys=["job"])
    weighted = {"weight": 9, "podAffinityTerm": own}
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [bare],
            "preferredDuringSchedulingIgnoredDuringExecution": [weighted],
        }
    }
    found = rules({"affinity": affinity}, labels={"job": "j"})
    assert found.near[0].selector == PodSelector((NO_PODS,))
    assert Requirement("job", "In", ("j",)) in found.pods_preferred[0].term.selector.labels
    assert not found.pods_preferred[0].away


def test_spread_keeps_its_policies() -> None:
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 2,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"a": "b"}},
        "nodeTaintsPolicy": "Honor",
        "nodeAffinityPolicy": "Ignore",
    }
    (found,) = rules({"topologySpreadConstraints": [constraint]}).spread
    assert (found.max_skew, found.required, found.honour_affinity, found.honour_taints) == (
        2,
        False,
        False,
        True,
    )


def test_a_selector_kubernetes_would_refuse_is_refused() -> None:
    bad = pod_term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(SelectorError, match="Near"):
        rules({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [bad]}}})


VOLUMES = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {volumeName: disk, accessModes: [ReadWriteOncePod]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk, labels: {topology.kubernetes.io/zone: z1__z2}}
spec:
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fresh}, spec: {storageClassName: late}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
volumeBindingMode: WaitForFirstConsumer
"""


def with_claim(world: Scene, name: str, claim: str) -> Pod:
    world.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])
    return next(pod for pod in world.pods() if pod.metadata.name == name)


def test_bound_volumes_tie_pods_to_nodes_and_zones() -> None:
    world = Scene(VOLUMES)
    ties = list(volume_ties(with_claim(world, "a", "data"), world.cluster()))
    assert ties == [
        (NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),),
        (NodeTerm((Requirement("topology.kubernetes.io/zone", "In", ("z1", "z2")),)),),
    ]
    assert list(volume_ties(with_claim(world, "b", "fresh"), world.cluster())) == []


def test_pods_wait_for_claims_that_are_not_there_or_not_bound() -> None:
    world = Scene(VOLUMES)
    assert waits_for_volume([with_claim(world, "a", "fresh")], world.cluster()) is None
    world.patch("StorageClass", "late", {"volumeBindingMode": "Immediate"})
    for claim, text in (("fresh", "has no volume yet"), ("nowhere", "does not exist yet")):
        hold = waits_for_volume([with_claim(world, f"p-{claim}", claim)], world.cluster())
        assert hold is not None
        assert text in hold.message


def test_a_claim_that_waits_for_its_pod_is_told_the_node() -> None:
    world = Scene(VOLUMES)
    fresh, bound = with_claim(world, "a", "fresh"), with_claim(world, "b", "data")
    (verb,) = acts.place_claims(fresh, "n7", world.cluster())
    assert (verb.resource.plural, verb.name) == ("persistentvolumeclaims", "fresh")
    assert verb.body == {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n7"}}}
    assert acts.place_claims(bound, "n7", world.cluster()) == ()


def test_members_cannot_share_a_claim_of_one_pod() -> None:
    world = Scene(VOLUMES)
    pods = [with_claim(world, name, "data") for name in ("a", "b")]
    (problem,) = shared_single_claims(pods, world.cluster())
    assert problem.fatal
    assert "a and b" in problem.message
    assert list(shared_single_claims(pods[:1], world.cluster())) == []
