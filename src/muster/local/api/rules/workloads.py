"""The rules of the kinds that own pods."""

from __future__ import annotations

from typing import Any

from muster.local.api.errors import FieldError, field_forbidden, invalid_value, not_supported, required
from muster.local.api.rules import pods
from muster.local.api.rules.meta import at_least_zero, dns_label, immutable, labels
from muster.local.api.selectors import selects

Object = dict[str, Any]

_STATEFUL_MAY_CHANGE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_LOOSE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_MOST_INDEXES = 100_000


def deployment(obj: Object, old: Object | None) -> list[FieldError]:
    return _replicated(obj, old)


def replica_set(obj: Object, old: Object | None) -> list[FieldError]:
    return _replicated(obj, old)


def daemon_set(obj: Object, old: Object | None) -> list[FieldError]:
    return _replicated(obj, old)


def stateful_set(obj: Object, old: Object | None) -> list[FieldError]:
    errors = _replicated(obj, None)
    if old is not None:
        before, after = ({k: v for k, v in o["spec"].items() if k not in _STATEFUL_LOOSE} for o in (old, obj))
        if before != after:
            errors.append(field_forbidden("spec", _STATEFUL_MAY_CHANGE))
    return errors


def replication_controller(obj: Object, _old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    errors = at_least_zero("spec.replicas", spec.get("replicas"))
    found = _template_labels(spec)
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    elif any(found.get(k) != v for k, v in spec["selector"].items()):
        errors.append(_mismatch(found))
    return errors + _template(spec, "spec.template")


def _replicated(obj: Object, old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    errors = at_least_zero("spec.replicas", spec.get("replicas"))
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid_value("spec.selector", selector, "empty selector is invalid for deployment"))
    else:
        errors += selector_faults(selector, "spec.selector")
    if not errors and not selects(selector, _template_labels(spec)):
        errors.append(_mismatch(_template_labels(spec)))
    errors += _template(spec, "spec.template")
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy != "Always" and policy in ("OnFailure", "Never"):
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    return errors + (immutable("spec.selector", selector, old["spec"].get("selector")) if old else [])


def selector_faults(selector: Object, path: str) -> list[FieldError]:
    """What makes a label selector invalid."""
    errors = labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = expression.get("operator"), expression.get("values")
        if operator in ("In", "NotIn"):
            if not values:
                words = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(required(f"{where}.values", words))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(field_forbidden(f"{where}.values", words))
        else:
            errors.append(invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        errors += labels({expression.get("key") or "": ""}, f"{where}.key")
    return errors


def _template_labels(spec: Object) -> dict[str, str]:
    return (spec["template"].get("metadata") or {}).get("labels") or {}


def _mismatch(found: Object) -> FieldError:
    return invalid_value("spec.template.metadata.labels", found, "`selector` does not match template `labels`")


def _template(spec: Object, path: str) -> list[FieldError]:
    errors = labels(_template_labels(spec), f"{path}.labels")
    return errors + pods.spec(spec["template"]["spec"], f"{path}.spec")


def job(obj: Object, old: Object | None) -> list[FieldError]:
    if old is not None and old["spec"] is obj["spec"]:
        return []
    errors = job_spec(obj["spec"], "spec", obj["metadata"].get("name", ""))
    if not errors and obj["spec"].get("selector") is None:
        errors.append(required("spec.selector"))
    return errors + (_job_update(obj["spec"], old) if old is not None else [])


def job_spec(spec: Object, path: str, name: str) -> list[FieldError]:
    errors = []
    for field in (
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ):
        errors += at_least_zero(f"{path}.{field}", spec.get(field))
    mode = spec.get("completionMode")
    if mode not in ("Indexed", "NonIndexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("Indexed", "NonIndexed")))
    if mode == "Indexed":
        errors += _indexed(spec, path, name)
    elif "backoffLimitPerIndex" in spec:
        words = "requires indexed completion mode"
        errors.append(invalid_value(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], words))
    errors += _template(spec, f"{path}.template")
    policy = spec["template"]["spec"].get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy != "Never" and "podFailurePolicy" in spec:
        errors.append(invalid_value(where, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    return errors


def _indexed(spec: Object, path: str, name: str) -> list[FieldError]:
    if "completions" not in spec:
        return [required(f"{path}.completions", "when completion mode is Indexed")]
    errors = []
    for field in ("completions", "parallelism"):
        if spec[field] > _MOST_INDEXES:
            words = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
            errors.append(invalid_value(f"{path}.{field}", spec[field], words))
    if spec["completions"] > 0 and dns_label(f"{name}-{spec['completions'] - 1}"):
        words = f"will not able to create pod with invalid DNS label: {name}-{spec['completions'] - 1}"
        errors.append(invalid_value("metadata.name", name, words))
    return errors


def _job_update(spec: Object, old: Object) -> list[FieldError]:
    before = old["spec"]
    errors = []
    elastic = (
        spec.get("completionMode") == "Indexed"
        and spec.get("completions") == spec.get("parallelism")
        and before.get("completions") is not None
    )
    if not elastic:
        errors += immutable("spec.completions", spec.get("completions"), before.get("completions"))
    for field in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        errors += immutable(f"spec.{field}", spec.get(field), before.get(field))
    started = (old.get("status") or {}).get("startTime") is not None
    fixed = _fixed_template(spec, before, loose=bool(before.get("suspend")) and not started)
    return errors + immutable("spec.template", *fixed)


def _fixed_template(spec: Object, before: Object, loose: bool) -> tuple[Any, Any]:
    """The parts of two templates that must agree; a job not yet started may still be steered."""
    if not loose:
        return spec["template"], before["template"]
    steering = {"nodeSelector", "affinity", "tolerations", "schedulingGates", "schedulerName"}
    new, old = ({k: v for k, v in s["template"]["spec"].items() if k not in steering} for s in (spec, before))
    return new, old


def cron_job(obj: Object, _old: Object | None) -> list[FieldError]:
    spec = obj["spec"]
    errors = []
    if not spec.get("schedule"):
        errors.append(required("spec.schedule"))
    elif not spec["schedule"].startswith("@") and len(spec["schedule"].split()) != 5:
        found = len(spec["schedule"].split())
        words = f"expected exactly 5 fields, found {found}: {spec['schedule'].split()}"
        errors.append(invalid_value("spec.schedule", spec["schedule"], words))
    template = spec["jobTemplate"]["spec"]
    policy = template["template"]["spec"].get("restartPolicy")
    errors += _template(template, "spec.jobTemplate.spec.template")
    if policy == "Always":
        where = "spec.jobTemplate.spec.template.spec.restartPolicy"
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    return errors
