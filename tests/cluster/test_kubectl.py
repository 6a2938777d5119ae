"""What people do with kubectl, done with the real one, old and new."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest

from tests.cluster.kubectl import Kubectl
from tests.cluster.manifests import config, deployment, job, pod, quota


def columns(table: str) -> list[str]:
    return table.splitlines()[0].split()


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "configmap/a created" in kubectl.apply(config("a", x="1", y="2"))
    assert "configmap/a unchanged" in kubectl.apply(config("a", x="1", y="2"))
    assert "configmap/a configured" in kubectl.apply(config("a", x="3"))
    assert kubectl.get("configmap", "a")["data"] == {"x": "3"}


def test_apply_merges_lists_by_their_keys(kubectl: Kubectl) -> None:
    wanted = deployment("d")
    containers = wanted["spec"]["template"]["spec"]["containers"]
    containers.append({**containers[0], "name": "side", "env": [{"name": "A", "value": "1"}]})
    kubectl.apply(wanted)
    kubectl("set", "image", "deployment/d", "main=busybox:1.35")
    containers[1]["env"] = [{"name": "B", "value": "2"}]
    kubectl.apply(wanted)
    main, side = kubectl.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert main["image"] == "busybox:1.36", "apply takes back what it had set"
    assert side["env"] == [{"name": "B", "value": "2"}]
    del containers[1]
    kubectl.apply(wanted)
    assert len(kubectl.get("deployment", "d")["spec"]["template"]["spec"]["containers"]) == 1


def test_get_prints_the_tables_people_know(kubectl: Kubectl) -> None:
    kubectl.apply(pod("p"), config("c", x="1"), job("j", parallelism=0))
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    assert columns(kubectl("get", "pods")) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    line = kubectl("get", "pod", "p").splitlines()[1].split()
    assert line[:4] == ["p", "1/1", "Running", "0"]
    assert "NODE" in columns(kubectl("get", "pods", "-o", "wide"))
    assert columns(kubectl("get", "nodes")) == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert columns(kubectl("get", "configmaps")) == ["NAME", "DATA", "AGE"]
    assert {"NAME", "COMPLETIONS", "DURATION", "AGE"} <= set(columns(kubectl("get", "jobs")))
    assert columns(kubectl("get", "events"))[:5] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT"]
    assert "No resources found" in kubectl("get", "secrets", "-l", "app=none")


def test_get_selects_by_labels_and_fields(kubectl: Kubectl) -> None:
    kubectl.apply(pod("one"), pod("two"))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
    assert kubectl("get", "pods", "-l", "app=one", "-o", "name").split() == ["pod/one"]
    assert kubectl("get", "pods", "-l", "app in (two,three)", "-o", "name").split() == ["pod/two"]
    running = kubectl("get", "pods", "--field-selector", "status.phase=Running,metadata.name!=one", "-o", "name")
    assert running.split() == ["pod/two"]
    assert "field label not supported" in kubectl("get", "pods", "--field-selector", "spec.x=y", code=1)


def test_describe_tells_of_the_object_and_its_events(kubectl: Kubectl) -> None:
    kubectl.apply(pod("p"))
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    told = kubectl("describe", "pod", "p")
    for part in ("Status:       Running", "Image:         busybox:1.36", "PodScheduled", "Events:", "Started"):
        assert " ".join(part.split()) in " ".join(told.split())
    node = kubectl.get("pod", "p")["spec"]["nodeName"]
    assert "Allocated resources" in kubectl("describe", "node", node)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", {"data": {"x": None, "z": "3"}}),
        ("strategic", {"data": {"x": None, "z": "3"}}),
        ("json", [{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/data/z", "value": "3"}]),
    ],
)
def test_patch_of_every_type(kubectl: Kubectl, kind: str, patch: object) -> None:
    kubectl.apply(config("c", x="1", y="2"))
    kubectl("patch", "configmap", "c", "--type", kind, "-p", json.dumps(patch))
    assert kubectl.get("configmap", "c")["data"] == {"y": "2", "z": "3"}


def test_a_json_patch_whose_test_fails_changes_nothing(kubectl: Kubectl) -> None:
    kubectl.apply(config("c", x="1"))
    patch = [{"op": "test", "path": "/data/x", "value": "2"}, {"op": "remove", "path": "/data/x"}]
    kubectl("patch", "configmap", "c", "--type", "json", "-p", json.dumps(patch), code=1)
    assert kubectl.get("configmap", "c")["data"] == {"x": "1"}


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    kubectl.apply(config("c", x="1"))
    kubectl("label", "configmap", "c", "team=a")
    kubectl("annotate", "configmap", "c", "note=hello")
    assert "already has a value" in kubectl("label", "configmap", "c", "team=b", code=1)
    kubectl("label", "configmap", "c", "team-")
    meta = kubectl.get("configmap", "c")["metadata"]
    assert "team" not in meta.get("labels", {}) and meta["annotations"]["note"] == "hello"
    assert "a valid label must be" in kubectl("label", "configmap", "c", "team=a b", code=1)


def test_wait_for_conditions_and_for_deletion(kubectl: Kubectl) -> None:
    stubborn = pod("p", "trap '' TERM; while true; do sleep 0.1; done", terminationGracePeriodSeconds=5)
    kubectl.apply(job("j", "exit 0"), stubborn)
    assert "condition met" in kubectl("wait", "--for=condition=complete", "job/j", "--timeout=60s")
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    kubectl("delete", "pod", "p", "--wait=false")
    assert "condition met" in kubectl("wait", "--for=delete", "pod/p", "--timeout=50s")
    assert "timed out" in kubectl("wait", "--for=condition=Failed", "job/j", "--timeout=1s", code=1)


def test_watch_shows_changes_as_they_come(kubectl: Kubectl) -> None:
    kubectl.apply(config("c", x="1"))
    watching = kubectl.start("get", "configmaps", "-w")
    assert watching.stdout is not None
    assert watching.stdout.readline().split() == ["NAME", "DATA", "AGE"]
    seen: list[list[str]] = []
    grown = threading.Event()

    def read(stream: subprocess.Popen[str]) -> None:
        assert stream.stdout is not None
        for line in stream.stdout:
            seen.append(line.split()[:2])
            if ["c", "2"] in seen:
                grown.set()

    reader = threading.Thread(target=read, args=(watching,))
    reader.start()
    kubectl.apply(config("c", x="1", y="2"))
    assert grown.wait(30), seen
    watching.terminate()
    reader.join()
    watching.wait()
    watching.stdout.close()


def test_logs_once_followed_and_cut(kubectl: Kubectl) -> None:
    kubectl.apply(pod("p", "for i in 1 2 3; do echo line $i; sleep 0.2; done", restartPolicy="Never"))
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    assert kubectl("logs", "-f", "p").splitlines() == ["line 1", "line 2", "line 3"]
    assert kubectl("logs", "p", "--tail=1") == "line 3\n"
    assert kubectl("logs", "p", "--timestamps").splitlines()[0].startswith("20")
    assert "container nope is not valid for pod p" in kubectl("logs", "p", "-c", "nope", code=1)


def test_deleting_takes_dependents_along_or_leaves_them(kubectl: Kubectl) -> None:
    kubectl.apply(job("gone", "sleep 3600"), job("kept", "sleep 3600"))
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "job-name=kept", "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "job-name=gone", "--timeout=60s")
    orphan = "--cascade=false" if kubectl.minor < 20 else "--cascade=orphan"
    kubectl("delete", "job", "kept", orphan)
    kubectl("delete", "job", "gone", "--cascade=foreground" if kubectl.minor >= 20 else "--cascade=true")
    kubectl("wait", "--for=delete", "pod", "-l", "job-name=gone", "--timeout=60s", code=None)
    left = kubectl("get", "pods", "-o", "name", "-l", "job-name in (gone, kept)").split()
    assert len(left) == 1 and left[0].startswith("pod/kept-")
    assert "ownerReferences" not in kubectl.get(left[0])["metadata"]
    assert "NotFound" in kubectl("delete", "job", "gone", code=1)


def test_scale_and_rollout(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("d", replicas=1))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/d", "--timeout=60s")
    kubectl("scale", "deployment/d", "--replicas=3")
    kubectl("rollout", "status", "deployment/d", "--timeout=60s")
    assert kubectl("get", "deployment", "d").splitlines()[1].split()[1] == "3/3"
    refused = kubectl("scale", "deployment/d", "--current-replicas=9", "--replicas=1", code=1)
    assert "Expected replicas to be 9" in refused


def test_a_quota_refuses_what_exceeds_it(kubectl: Kubectl) -> None:
    kubectl.apply(quota("small", pods="1", requests_cpu="1"))
    kubectl("wait", "--for=jsonpath={.status.hard.pods}=1", "resourcequota/small", "--timeout=30s", code=None)
    big = pod("big", restartPolicy="Never")
    big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    told = kubectl.apply(big, code=1)
    words = 'pods "big" is forbidden: exceeded quota: small, requested: requests.cpu=2, used: requests.cpu=0, '
    assert words + "limited: requests.cpu=1" in told
    told = kubectl.apply(pod("vague"), code=1)
    assert 'pods "vague" is forbidden: failed quota: small: must specify requests.cpu for: main' in told
    fits = pod("fits")
    fits["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    kubectl.apply(fits)
    assert kubectl.get("resourcequota", "small")["status"]["used"] == {"pods": "1", "requests.cpu": "500m"}
    fits["metadata"]["name"] = "second"
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in kubectl.apply(fits, code=1)


def test_dry_run_and_diff_change_nothing(kubectl: Kubectl) -> None:
    assert "configmap/c created (server dry run)" in kubectl.apply(config("c", x="1"), options=("--dry-run=server",))
    assert "NotFound" in kubectl("get", "configmap", "c", code=1)
    kubectl.apply(config("c", x="1"))
    changed = json.dumps(config("c", x="2"))
    told = kubectl("diff", "-f", "-", stdin=changed, code=1)
    assert '-  x: "1"' in told and '+  x: "2"' in told
    assert kubectl.get("configmap", "c")["data"] == {"x": "1"}
    assert kubectl("diff", "-f", "-", stdin=json.dumps(config("c", x="1"))) == ""


def test_explain_knows_the_fields(kubectl: Kubectl) -> None:
    told = kubectl("explain", "pod.spec.containers.resources")
    assert "limits" in told and "requests" in told
    assert "backoffLimit" in kubectl("explain", "job.spec")
    assert "minMember" in kubectl("explain", "podgroups.spec", "--api-version=scheduling.x-k8s.io/v1alpha1")
    kubectl("explain", "pod.spec.nonsense", code=1)


def test_unknown_fields_and_wrong_types_are_refused(kubectl: Kubectl) -> None:
    wrong = pod("p")
    wrong["spec"]["contaners"] = []
    told = kubectl.apply(wrong, code=1)
    assert "unknown field" in told and "contaners" in told
    told = kubectl.apply(pod("p", restartPolicy="Sometimes"), options=("--validate=false",), code=1)
    assert 'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"' in (
        told.replace('"OnFailure", "Never"', '"Never", "OnFailure"')
    )
    told = kubectl.apply(pod("P_p"), code=1)
    assert "a lowercase RFC 1123 subdomain must consist of" in told
    told = kubectl.apply(pod("p", priorityClassName="nope"), code=1)
    assert "no PriorityClass with name nope was found" in told


def test_server_side_apply_owns_fields_and_reports_conflicts(kubectl: Kubectl) -> None:
    kubectl.apply(config("c", x="1"), options=("--server-side", "--field-manager=one"))
    told = kubectl.apply(config("c", x="2"), options=("--server-side", "--field-manager=two"), code=1)
    assert 'conflict with "one"' in told and ".data.x" in told
    kubectl.apply(config("c", y="2"), options=("--server-side", "--field-manager=two"))
    assert kubectl.get("configmap", "c")["data"] == {"x": "1", "y": "2"}
    kubectl.apply(config("c", x="2"), options=("--server-side", "--field-manager=two", "--force-conflicts"))
    assert kubectl.get("configmap", "c")["data"] == {"x": "2"}, "what two gave up is gone, what it forced is its"


def test_custom_kinds_are_validated_and_shown_in_their_columns(kubectl: Kubectl, is_local: bool) -> None:
    if not is_local:
        pytest.skip("a real cluster has the PodGroup definitions only where they were installed")
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 3},
    }
    kubectl.apply(group)
    table = kubectl("get", "podgroups.scheduling.x-k8s.io")
    assert columns(table)[:6] == ["NAME", "PHASE", "MINMEMBER", "RUNNING", "SUCCEEDED", "FAILED"]
    group["spec"] = {"minMember": 0}
    told = kubectl.apply(group, code=1)
    assert "spec.minMember in body should be greater than or equal to 1" in told
    group["spec"] = {"minMembers": 3}
    assert "unknown field" in kubectl.apply(group, code=1)


def test_no_token_and_no_rights(kubectl: Kubectl) -> None:
    assert "Unauthorized" in kubectl("--token", "wrong", "get", "pods", code=1) or "logged in" in kubectl(
        "--token", "wrong", "get", "pods", code=1
    )
    refused = kubectl("--as", "nobody", "get", "pods", code=1)
    assert 'pods is forbidden: User "nobody" cannot list resource "pods" in API group ""' in refused
