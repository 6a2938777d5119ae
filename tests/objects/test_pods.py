"""Pods: decoding, phases, host ports, claims and node selection."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.decode import ObjectError, from_json, from_object
from muster.objects.owners import ObjectMeta, OwnerReference, controller_of, seconds
from muster.objects.pods import HostPort, Pod, claim_names, host_ports, selects_node

FULL = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-0",
        "namespace": "team",
        "uid": "u1",
        "labels": {"app": "train"},
        "creationTimestamp": "2026-08-20T15:28:25Z",
        "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u2"},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u3", "controller": True},
        ],
    },
    "spec": {
        "schedulerName": "muster",
        "nodeName": "n1",
        "priority": -5,
        "schedulingGates": [{"name": "g"}],
        "schedulingGroup": {"podGroupName": "group"},
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostIP": "10.0.0.1"}]}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "config", "configMap": {"name": "x"}},
        ],
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def test_a_pod_decodes_from_text_and_from_a_tree_alike() -> None:
    pod = from_json(json.dumps(FULL), Pod)
    assert pod == from_object(FULL, Pod)
    assert (pod.metadata.name, pod.spec.priority, pod.spec.scheduler_name) == ("train-0", -5, "muster")
    assert pod.spec.scheduling_group is not None
    assert pod.spec.scheduling_group.pod_group_name == "group"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.topology_spread_constraints[0].max_skew == 2
    assert pod.spec.topology_spread_constraints[0].node_affinity_policy == "Honor"
    assert pod.holds_node
    assert pod.is_gated
    assert pod.is_ready
    assert claim_names(pod) == ("claim", "train-0-scratch")


def test_nulls_read_as_absent() -> None:
    tree = {
        "metadata": {"name": "p", "creationTimestamp": None, "labels": None},
        "spec": {
            "containers": None,
            "volumes": [{"name": "v", "persistentVolumeClaim": None}],
            "priority": None,
        },
        "status": None,
    }
    for pod in (from_json(json.dumps(tree), Pod), from_object(tree, Pod)):
        assert pod.metadata.labels == {}
        assert pod.spec.priority == 0
        assert pod.status.phase == "Pending"
        assert claim_names(pod) == ()


def test_misshapen_objects_are_named_in_one_line() -> None:
    tree = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"priority": "high"}}
    with pytest.raises(ObjectError, match=r"^Pod team/p: .*\$\.spec\.priority"):
        from_object(tree, Pod)
    with pytest.raises(ObjectError, match=r"^Pod team/p: .*\$\.spec\.priority"):
        from_json(json.dumps(tree), Pod)
    with pytest.raises(ObjectError, match=r"^Pod p: "):
        from_object({"metadata": {"name": "p"}, "spec": 1}, Pod)
    with pytest.raises(ObjectError, match=r"^Pod: "):
        from_object([], Pod)
    with pytest.raises(ObjectError, match=r"^Pod: not JSON: "):
        from_json("{", Pod)


@pytest.mark.parametrize(
    ("phase", "node", "deleted", "holds"),
    [
        ("Pending", "", "", False),
        ("Pending", "n1", "", True),
        ("Running", "n1", "", True),
        ("Running", "n1", "2026-08-20T15:28:25Z", True),
        ("Succeeded", "n1", "", False),
        ("Failed", "n1", "", False),
        ("Unknown", "n1", "", True),
    ],
)
def test_a_pod_holds_its_node_until_it_has_ended(phase: str, node: str, deleted: str, holds: bool) -> None:
    tree = {
        "metadata": {"deletionTimestamp": deleted},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }
    pod = from_object(tree, Pod)
    assert pod.holds_node is holds
    assert pod.is_terminating is bool(deleted)


def test_controllers_and_their_groups() -> None:
    owner = controller_of(from_object(FULL, Pod).metadata)
    assert owner is not None
    assert (owner.kind, owner.name, owner.group) == ("Job", "train", "batch")
    assert OwnerReference(api_version="v1").group == ""
    assert controller_of(ObjectMeta()) is None


def test_times() -> None:
    assert seconds("1970-01-02T00:00:00Z") == 86400
    assert seconds("1970-01-01T02:00:00.500000+02:00") == 0.5
    assert seconds("1970-01-01T00:00:01") == 1
    with pytest.raises(ObjectError, match=r"^time 'soon': must look like"):
        seconds("soon")


@pytest.mark.parametrize(
    ("left", "right", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 81), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
    ],
)
def test_host_port_conflicts(left: tuple[str, str, int], right: tuple[str, str, int], conflict: bool) -> None:
    assert HostPort(*left).conflicts(HostPort(*right)) is conflict
    assert HostPort(*right).conflicts(HostPort(*left)) is conflict


def _ports(init: list[dict[str, object]], main: list[dict[str, object]], host: bool = False) -> tuple[HostPort, ...]:
    return host_ports(from_object({"spec": {"initContainers": init, "containers": main, "hostNetwork": host}}, Pod))


def test_which_ports_are_taken_on_the_node() -> None:
    open_, taken = {"containerPort": 80}, {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}
    assert _ports([], [{"ports": [open_, taken, taken]}]) == (HostPort("0.0.0.0", "UDP", 8080),)
    assert _ports([], [{"ports": [open_]}], host=True) == (HostPort("0.0.0.0", "TCP", 80),)
    assert _ports([{"ports": [taken]}], []) == ()
    assert len(_ports([{"ports": [taken], "restartPolicy": "Always"}], [])) == 1


ports = st.builds(
    HostPort,
    st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]),
    st.integers(1, 3),
)


@given(ports, ports)
def test_taking_every_address_conflicts_with_no_less(left: HostPort, right: HostPort) -> None:
    if left.conflicts(right):
        assert HostPort("0.0.0.0", left.protocol, left.port).conflicts(right)
        assert left.conflicts(HostPort("0.0.0.0", right.protocol, right.port))


def test_node_selector_and_required_affinity_must_both_hold() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = from_object({"spec": {"nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": required}}}, Pod)
    assert selects_node(pod, {"a": "b", "gpu": ""}, "n")
    assert not selects_node(pod, {"a": "b"}, "n")
    assert not selects_node(pod, {"gpu": ""}, "n")
    assert selects_node(Pod(), {}, "n")


def test_required_affinity_without_terms_selects_no_node() -> None:
    none: dict[str, object] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    pod = from_object({"spec": {"affinity": {"nodeAffinity": none}}}, Pod)
    assert not selects_node(pod, {}, "n")
