"""What a cluster holds from its first moment: namespaces, accounts, priority classes, roles."""

from __future__ import annotations

from typing import Any

from muster.local.api import crds, quota
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError
from muster.local.api.options import Options
from muster.local.api.priority import SYSTEM
from muster.local.api.rbac import ROLES
from muster.local.api.service_addresses import assign

Object = dict[str, Any]

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def prepare(cluster: Cluster) -> None:
    """Hook up what the server does by itself, and create what is missing."""
    cluster.hooks["namespaces"] = lambda new, old: _furnish(cluster, new, old)
    cluster.before_create["services"] = lambda obj: assign(cluster.store, obj)
    cluster.before_create["resourcequotas"] = lambda obj: quota.observe(cluster.store, obj)
    crds.serve(cluster)
    crds.install_shipped(cluster)
    for name in _NAMESPACES:
        _ensure(cluster, "namespaces", {"metadata": {"name": name}}, "")
    for name, value in SYSTEM.items():
        priority: Object = {"metadata": {"name": name}, "value": value, "description": f"For {name} pods."}
        _ensure(cluster, "scheduling.k8s.io/priorityclasses", priority, "")
    for name, rules in ROLES.items():
        role: Object = {"metadata": {"name": name}, "rules": rules}
        _ensure(cluster, "rbac.authorization.k8s.io/clusterroles", role, "")
    service: Object = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP"}]},
    }
    _ensure(cluster, "services", service, "default")
    # A lease that nobody ever held: the first scheduler need not wait out a leader that might have been.
    unheld: Object = {"metadata": {"name": "muster"}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
    _ensure(cluster, "coordination.k8s.io/leases", unheld, "kube-system")


def _furnish(cluster: Cluster, new: Object | None, old: Object | None) -> None:
    """Every namespace has a default service account, at once, so that a pod can follow its namespace."""
    if new is not None and old is None:
        account: Object = {"metadata": {"name": "default"}}
        _ensure(cluster, "serviceaccounts", account, new["metadata"]["name"])


def _ensure(cluster: Cluster, resource_id: str, obj: Object, namespace: str) -> None:
    resource = cluster.catalogue.by_id[resource_id]
    try:
        cluster.create(
            resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj}, namespace, Options()
        )
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
