"""The rules of pods and pod templates."""

from __future__ import annotations

from typing import Any

from muster.local.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required,
)
from muster.local.api.rules.meta import dns_label, dns_subdomain, qualified_name
from muster.objects.quantity import milli_units

Object = dict[str, Any]

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL = ("Always", "IfNotPresent", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Object, old: Object | None) -> list[FieldError]:
    if old is not None:
        return [] if obj["spec"] is old["spec"] else _update(obj["spec"], old["spec"])
    return spec(obj["spec"], "spec")


def spec(pod_spec: Object, path: str) -> list[FieldError]:
    """Everything wrong with a pod's spec."""
    errors = _containers(pod_spec, path)
    for name, allowed in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if pod_spec.get(name) not in allowed:
            errors.append(not_supported(f"{path}.{name}", pod_spec.get(name), allowed))
    for name in ("nodeName", "serviceAccountName", "schedulerName"):
        if pod_spec.get(name) and (fault := dns_subdomain(pod_spec[name])):
            errors.append(invalid_value(f"{path}.{name}", pod_spec[name], fault))
    for name in ("hostname", "subdomain"):
        if pod_spec.get(name) and (fault := dns_label(pod_spec[name])):
            errors.append(invalid_value(f"{path}.{name}", pod_spec[name], fault))
    deadline = pod_spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        errors.append(
            invalid_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    if pod_spec["terminationGracePeriodSeconds"] < 0:
        words = "must be greater than or equal to 0"
        errors.append(
            invalid_value(f"{path}.terminationGracePeriodSeconds", pod_spec["terminationGracePeriodSeconds"], words)
        )
    if "tolerations" in pod_spec:
        errors += _tolerations(pod_spec["tolerations"], f"{path}.tolerations")
    gates = [g.get("name") for g in pod_spec.get("schedulingGates") or ()]
    if gates and pod_spec.get("nodeName"):
        errors.append(field_forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def _containers(pod_spec: Object, path: str) -> list[FieldError]:
    containers = pod_spec.get("containers") or []
    if not containers:
        return [required(f"{path}.containers")]
    errors: list[FieldError] = []
    volumes: set[str] = set()
    for i, volume in enumerate(pod_spec.get("volumes") or ()):
        where = f"{path}.volumes[{i}].name"
        errors += _name(volume.get("name"), where, volumes)
        volumes.add(volume.get("name") or "")
    names: set[str] = set()
    lists = (("containers", containers), ("initContainers", pod_spec.get("initContainers") or ()))
    for plural, found in lists:
        for i, container in enumerate(found):
            where = f"{path}.{plural}[{i}]"
            errors += _name(container.get("name"), f"{where}.name", names)
            names.add(container.get("name") or "")
            errors += _container(container, where, volumes)
    return errors


def _name(name: str | None, path: str, taken: set[str]) -> list[FieldError]:
    if not name:
        return [required(path)]
    if name in taken:
        return [duplicate(path, name)]
    fault = dns_label(name)
    return [invalid_value(path, name, fault)] if fault else []


def _container(container: Object, path: str, volumes: set[str]) -> list[FieldError]:
    errors = []
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    elif container["imagePullPolicy"] not in _PULL:
        errors.append(not_supported(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL))
    for i, env in enumerate(container.get("env") or ()):
        if not env.get("name"):
            errors.append(required(f"{path}.env[{i}].name"))
        if env.get("value") and env.get("valueFrom"):
            words = "may not be specified when `value` is not empty"
            errors.append(invalid_value(f"{path}.env[{i}].valueFrom", "", words))
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            words = f'Not found: "{mount.get("name", "")}"'
            errors.append(FieldError("FieldValueNotFound", f"{path}.volumeMounts[{i}].name", words))
        if not mount.get("mountPath"):
            errors.append(required(f"{path}.volumeMounts[{i}].mountPath"))
    for i, port in enumerate(container.get("ports") or ()):
        errors += port_number(port.get("containerPort"), f"{path}.ports[{i}].containerPort")
    return errors + resources(container.get("resources") or {}, f"{path}.resources")


def port_number(number: Any, path: str) -> list[FieldError]:
    if not number:
        return [required(path)]
    if isinstance(number, int) and not 1 <= number <= 65535:
        return [invalid_value(path, number, "must be between 1 and 65535, inclusive")]
    return []


def resources(found: Object, path: str) -> list[FieldError]:
    """The rules of requests and limits, extended resources included."""
    errors = []
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for kind, quantities in (("limits", limits), ("requests", requests)):
        for name, amount in quantities.items():
            where = f"{path}.{kind}[{name}]"
            if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
                errors.append(invalid_value(where, name, "must be a standard resource for containers"))
            elif fault := qualified_name(name):
                errors.append(invalid_value(where, name, fault))
            if milli_units(amount) < 0:
                errors.append(invalid_value(where, amount, "must be greater than or equal to 0"))
            elif "/" in name and milli_units(amount) % 1000:
                errors.append(invalid_value(where, amount, "must be an integer"))
    for name, amount in requests.items():
        limit = limits.get(name)
        extended = "/" in name
        if limit is None and extended:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif limit is not None and extended and milli_units(amount) != milli_units(limit):
            words = f"must be equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", amount, words))
        elif limit is not None and milli_units(amount) > milli_units(limit):
            words = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", amount, words))
    return errors


def _tolerations(found: list[Object], path: str) -> list[FieldError]:
    errors = []
    for i, toleration in enumerate(found):
        operator = toleration.get("operator") or "Equal"
        effect = toleration.get("effect")
        if operator not in ("Exists", "Equal", "Lt", "Gt"):
            errors.append(not_supported(f"{path}[{i}].operator", operator, ("Equal", "Exists")))
        elif operator == "Exists" and toleration.get("value"):
            words = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid_value(f"{path}[{i}].operator", toleration, words))
        elif not toleration.get("key") and operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid_value(f"{path}[{i}].operator", operator, words))
        if effect and effect not in _EFFECTS:
            errors.append(not_supported(f"{path}[{i}].effect", effect, _EFFECTS))
    return errors


def _update(new: Object, old: Object) -> list[FieldError]:
    allowed = _comparable(new) == _comparable(old) and _gates_only_removed(new, old)
    if not allowed:
        return [field_forbidden("spec", _MAY_CHANGE)]
    errors = []
    kept = new.get("tolerations") or []
    if any(t not in kept for t in old.get("tolerations") or ()):
        errors.append(
            field_forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        )
    return errors


def _gates_only_removed(new: Object, old: Object) -> bool:
    before = [g.get("name") for g in old.get("schedulingGates") or ()]
    after = [g.get("name") for g in new.get("schedulingGates") or ()]
    return all(gate in before for gate in after)


def _comparable(pod_spec: Object) -> Object:
    """A spec without what may change on a pod that exists."""
    loose = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"}
    kept = {k: v for k, v in pod_spec.items() if k not in loose}
    if pod_spec.get("schedulingGates"):
        kept = {k: v for k, v in kept.items() if k not in ("nodeSelector", "affinity")}
    for plural in ("containers", "initContainers"):
        if plural in kept:
            kept[plural] = [{k: v for k, v in c.items() if k != "image"} for c in kept[plural]]
    return kept
