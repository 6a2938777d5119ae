"""Which rules apply to which kind.

A rule looks at an object (and, on update, at the one it replaces) and returns field errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.local.api.errors import FieldError
from muster.local.api.rules import others, pods, workloads

Object = dict[str, Any]
Rule = Callable[[Object, Object | None], list[FieldError]]

_RULES: dict[str, Rule] = {
    "pods": pods.pod,
    "services": others.service,
    "configmaps": others.immutable_data,
    "secrets": others.immutable_data,
    "resourcequotas": others.resource_quota,
    "limitranges": others.limit_range,
    "replicationcontrollers": workloads.replication_controller,
    "apps/deployments": workloads.deployment,
    "apps/replicasets": workloads.replica_set,
    "apps/daemonsets": workloads.daemon_set,
    "apps/statefulsets": workloads.stateful_set,
    "batch/jobs": workloads.job,
    "batch/cronjobs": workloads.cron_job,
    "policy/poddisruptionbudgets": others.disruption_budget,
    "scheduling.k8s.io/priorityclasses": others.priority_class,
    "scheduling.k8s.io/podgroups": others.native_pod_group,
    "coordination.k8s.io/leases": others.lease,
    "rbac.authorization.k8s.io/rolebindings": others.role_binding,
    "rbac.authorization.k8s.io/clusterrolebindings": others.role_binding,
}


def check(resource_id: str, obj: Object, old: Object | None) -> list[FieldError]:
    """Everything wrong with the object as it would be stored."""
    rule = _RULES.get(resource_id)
    return rule(obj, old) if rule is not None else []
