"""The rules of the remaining kinds."""

from __future__ import annotations

from typing import Any

from muster.local.api.errors import FieldError, field_forbidden, invalid_value, not_supported, required
from muster.local.api.rules.meta import at_least_zero, immutable
from muster.local.api.rules.pods import port_number
from muster.objects.quantity import milli_units

Object = dict[str, Any]

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_HIGHEST_USER_PRIORITY = 1_000_000_000


def service(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    errors = []
    if spec.get("type") not in _SERVICE_TYPES:
        errors.append(not_supported("spec.type", spec.get("type"), _SERVICE_TYPES))
    ports = spec.get("ports") or []
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        errors.append(required("spec.ports"))
    for i, port in enumerate(ports):
        errors += port_number(port.get("port"), f"spec.ports[{i}].port")
        if len(ports) > 1 and not port.get("name"):
            errors.append(required(f"spec.ports[{i}].name"))
    if old is not None and old["spec"].get("clusterIP") and spec.get("clusterIP") != old["spec"]["clusterIP"]:
        errors.append(invalid_value("spec.clusterIPs[0]", spec.get("clusterIP"), "may not change once set"))
    return errors


def immutable_data(obj: Object, old: Object | None) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    changed = [k for k in ("data", "binaryData", "immutable", "type") if obj.get(k) != old.get(k)]
    return [field_forbidden(name, "field is immutable when `immutable` is set") for name in changed]


def resource_quota(obj: Object, _old: Object | None) -> list[FieldError]:
    errors = []
    for name, amount in (obj["spec"].get("hard") or {}).items():
        if milli_units(amount) < 0:
            where = f"spec.hard[{name}]"
            errors.append(invalid_value(where, amount, "must be greater than or equal to 0"))
    return errors


def limit_range(obj: Object, _old: Object | None) -> list[FieldError]:
    errors = []
    for i, item in enumerate(obj["spec"].get("limits") or ()):
        if item.get("type") not in _LIMIT_TYPES and "/" not in (item.get("type") or ""):
            errors.append(not_supported(f"spec.limits[{i}].type", item.get("type"), _LIMIT_TYPES))
        for name, low in (item.get("min") or {}).items():
            high = (item.get("max") or {}).get(name)
            if high is not None and milli_units(low) > milli_units(high):
                words = f"min value {low} is greater than max value {high}"
                errors.append(invalid_value(f"spec.limits[{i}].min[{name}]", low, words))
    return errors


def disruption_budget(obj: Object, _old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    errors = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        words = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid_value("spec", spec, words))
    for name in ("minAvailable", "maxUnavailable"):
        errors += at_least_zero(f"spec.{name}", spec.get(name))
        value = spec.get(name)
        if isinstance(value, str) and not (value.endswith("%") and value[:-1].isdecimal()):
            words = "a valid percent string must be a numeric string followed by an ending '%'"
            errors.append(invalid_value(f"spec.{name}", value, words))
    return errors


def priority_class(obj: Object, old: Object | None) -> list[FieldError]:
    value, name = obj["value"], obj["metadata"].get("name") or ""
    if old is not None:
        errors = []
        if value != old["value"]:
            errors.append(field_forbidden("value", "may not be changed in an update."))
        return errors + immutable("preemptionPolicy", obj["preemptionPolicy"], old["preemptionPolicy"])
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        words = "priority class names with 'system-' prefix are reserved for system use only"
        return [field_forbidden("metadata.name", words)]
    if value > _HIGHEST_USER_PRIORITY and not name.startswith("system-"):
        words = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        return [field_forbidden("value", words)]
    if obj["preemptionPolicy"] not in ("Never", "PreemptLowerPriority"):
        return [not_supported("preemptionPolicy", obj["preemptionPolicy"], ("Never", "PreemptLowerPriority"))]
    return []


def lease(obj: Object, _old: Object | None) -> list[FieldError]:
    duration = (obj.get("spec") or {}).get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        return [invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return []


def role_binding(obj: Object, old: Object | None) -> list[FieldError]:
    errors = []
    role = obj["roleRef"]
    if role.get("kind") not in ("Role", "ClusterRole"):
        errors.append(not_supported("roleRef.kind", role.get("kind"), ("ClusterRole", "Role")))
    if not role.get("name"):
        errors.append(required("roleRef.name"))
    if old is not None and role != old["roleRef"]:
        errors.append(invalid_value("roleRef", role, "cannot change roleRef"))
    return errors


def native_pod_group(obj: Object, old: Object | None) -> list[FieldError]:
    policy = obj["spec"].get("schedulingPolicy")
    if not isinstance(policy, dict) or not policy:
        words = "must specify one of: `basic`, `gang`"
        return [invalid_value("spec.schedulingPolicy", policy or "", words)]
    if len(policy) > 1:
        words = "must specify exactly one of: `basic`, `gang`"
        return [invalid_value("spec.schedulingPolicy", policy, words)]
    count = (policy.get("gang") or {}).get("minCount", 0)
    if "gang" in policy and count < 1:
        words = "must be greater than or equal to 1"
        return [invalid_value("spec.schedulingPolicy.gang.minCount", count, words)]
    if old is not None:
        frozen = {k: v for k, v in obj["spec"].items() if k != "schedulingPolicy"}
        before = {k: v for k, v in old["spec"].items() if k != "schedulingPolicy"}
        return immutable("spec", frozen, before)
    return []
