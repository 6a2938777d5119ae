"""Names in a pod: which resolve, to what, and for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muster.local.api.access import Object
from muster.local.nodes.process.hosts import hostname, hosts_file, names, rewrite


def pod(name: str, address: str, *, ready: bool = True, namespace: str = "default", **spec: Any) -> Object:
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running", "podIP": address, "conditions": conditions}
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": "t"}}, "spec": spec, "status": status}


def service(name: str, namespace: str = "default", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": {"app": "t"}, **spec}}


def resolve(text: str, name: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if name in line.split()[1:]]


ZERO = pod("t-0-x", "127.64.0.1", hostname="t-0", subdomain="t")
ONE = pod("t-1-x", "127.64.0.2", hostname="t-1", subdomain="t")


def test_peers_by_all_their_names() -> None:
    text = hosts_file(ONE, "127.64.0.2", names([ZERO, ONE], [service("t")]))
    for name in ("t-0.t", "t-0.t.default", "t-0.t.default.svc", "t-0.t.default.svc.cluster.local"):
        assert resolve(text, name) == ["127.64.0.1"]
    assert resolve(text, "t") == ["127.64.0.1", "127.64.0.2"]
    assert resolve(text, "t-0") == []
    assert resolve(text, "t-1") == ["127.64.0.2"]
    assert resolve(text, "localhost") == ["127.0.0.1", "::1"]


def test_the_pods_own_full_name_is_its_canonical_one() -> None:
    first = next(line for line in hosts_file(ONE, "127.64.0.2", []).splitlines() if "t-1" in line)
    assert first.split() == ["127.64.0.2", "t-1.t.default.svc.cluster.local", "t-1"]


def test_only_ready_pods_have_names_unless_their_service_says_so() -> None:
    starting = pod("t-0-x", "127.64.0.1", ready=False, hostname="t-0", subdomain="t")
    assert names([starting], [service("t")]) == []
    assert len(names([starting], [service("t", publishNotReadyAddresses=True)])) == 2


def test_a_pod_of_no_service_or_another_one_has_no_such_name() -> None:
    assert names([ZERO], []) == []
    assert [n.name for n in names([ZERO], [service("other")])] == ["other"]
    assert names([ZERO], [service("t", selector={"app": "else"})]) == []


def test_short_names_stay_in_their_namespace() -> None:
    known = names([ZERO], [service("t")])
    elsewhere = pod("q", "127.64.0.9", namespace="team")
    text = hosts_file(elsewhere, "127.64.0.9", known)
    assert resolve(text, "t-0.t") == []
    assert resolve(text, "t-0.t.default") == ["127.64.0.1"]


def test_host_names_are_cut_as_kubernetes_cuts_them() -> None:
    assert hostname(pod("a" * 62 + ".b", "")) == "a" * 62
    assert hostname(ONE) == "t-1"


def test_a_file_is_changed_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    rewrite(file, "one\ntwo\n")
    number = file.stat().st_ino
    rewrite(file, "one\n")
    assert (file.read_text(), file.stat().st_ino) == ("one\n", number)
