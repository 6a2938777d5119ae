"""Names, labels, annotations and owners: the rules every kind shares."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from muster.local.api.errors import FieldError, invalid_value, required

Object = dict[str, Any]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MOST_ANNOTATIONS = 256 * 1024

_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_NAMED = frozenset({"namespaces", "services"})
_PATH_NAMED = "rbac.authorization.k8s.io/"


@lru_cache(maxsize=8192)
def dns_label(value: str) -> str:
    """What is wrong with a DNS label; "" when nothing is."""
    if len(value) > 63:
        return "must be no more than 63 characters"
    return "" if _DNS_LABEL.fullmatch(value) else _LABEL_WORDS


@lru_cache(maxsize=8192)
def dns_subdomain(value: str) -> str:
    if len(value) > 253:
        return "must be no more than 253 characters"
    return "" if _DNS_SUBDOMAIN.fullmatch(value) else _SUBDOMAIN_WORDS


@lru_cache(maxsize=8192)
def qualified_name(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or dns_subdomain(prefix)):
        return "prefix part " + (_SUBDOMAIN_WORDS if prefix else "must be non-empty")
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    return "" if _NAME_PART.fullmatch(name) else _NAME_PART_WORDS


@lru_cache(maxsize=8192)
def _label(key: str, value: str) -> tuple[str, str]:
    if len(value) > 63:
        return qualified_name(key), "must be no more than 63 characters"
    return qualified_name(key), "" if _LABEL_VALUE.fullmatch(value) else _VALUE_WORDS


def name_fault(resource_id: str, name: str) -> str:
    """What is wrong with an object's name, by the rule of its kind."""
    if resource_id.startswith(_PATH_NAMED):
        if name in (".", ".."):
            return f"may not be '{name}'"
        return "may not contain '/'" if "/" in name else "may not contain '%'" if "%" in name else ""
    return dns_label(name) if resource_id in _LABEL_NAMED else dns_subdomain(name)


def labels(found: Object, path: str) -> list[FieldError]:
    errors = []
    for key, value in found.items():
        key_fault, value_fault = _label(key, value)
        if key_fault:
            errors.append(invalid_value(path, key, key_fault))
        if value_fault:
            errors.append(invalid_value(path, value, value_fault))
    return errors


def metadata(resource_id: str, meta: Object) -> list[FieldError]:
    """Everything wrong with an object's metadata."""
    errors = []
    if not meta.get("name"):
        return [required("metadata.name", "name or generateName is required")]
    if fault := name_fault(resource_id, meta["name"]):
        errors.append(invalid_value("metadata.name", meta["name"], fault))
    if "labels" in meta:
        errors += labels(meta["labels"], "metadata.labels")
    if "annotations" in meta:
        errors += _annotations(meta["annotations"])
    if "ownerReferences" in meta:
        errors += _owners(meta["ownerReferences"])
    for i, finalizer in enumerate(meta.get("finalizers") or ()):
        if fault := qualified_name(finalizer):
            errors.append(invalid_value(f"metadata.finalizers[{i}]", finalizer, fault))
    return errors


def _annotations(found: Object) -> list[FieldError]:
    faults = [(key, qualified_name(key.lower())) for key in found]
    errors = [invalid_value("metadata.annotations", key, fault) for key, fault in faults if fault]
    if sum(len(k) + len(v) for k, v in found.items()) > _MOST_ANNOTATIONS:
        words = f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"
        errors.append(FieldError("FieldValueTooLong", "metadata.annotations", words))
    return errors


def _owners(found: list[Object]) -> list[FieldError]:
    errors = []
    for i, owner in enumerate(found):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                where = f"metadata.ownerReferences[{i}].{name}"
                errors.append(invalid_value(where, "", f"{name} must not be empty"))
    controllers = [f"{o.get('kind')}/{o.get('name')}" for o in found if o.get("controller")]
    if len(controllers) > 1:
        words = (
            "Only one reference can have Controller set to true. "
            f"Found 'true' in references for {controllers[0]} and {controllers[1]}"
        )
        errors.append(invalid_value("metadata.ownerReferences", found, words))
    return errors


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if new == old else [invalid_value(path, new, "field is immutable")]


def at_least_zero(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and value < 0:
        return [invalid_value(path, value, "must be greater than or equal to 0")]
    return []
