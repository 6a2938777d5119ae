"""Label and field selectors of a request, as predicates over objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from muster.local.api.errors import bad_request
from muster.local.api.resources import Resource
from muster.objects.decode import from_object
from muster.objects.selectors import LabelSelector, SelectorError, label_selector
from muster.objects.selectortext import parse_field_selector, parse_label_selector

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

# What the real server lets clients select by, besides metadata.name and metadata.namespace.
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "replicationcontrollers": ("status.replicas",),
    "apps/replicasets": ("status.replicas",),
    "batch/jobs": ("status.successful",),
    "services": ("spec.clusterIP", "spec.type"),
}
_DEFAULTS = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"}


@lru_cache(maxsize=1024)
def labels(text: str) -> Predicate | None:
    """A predicate for a label selector; None when everything matches. Raises ApiError 400."""
    if not text.strip():
        return None
    try:
        selector = parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    return lambda obj: selector.matches(obj["metadata"].get("labels") or {})


@lru_cache(maxsize=1024)
def fields(text: str, resource: Resource) -> Predicate | None:
    """A predicate for a field selector; None when everything matches. Raises ApiError 400."""
    try:
        selector = parse_field_selector(text)
    except SelectorError as error:
        raise bad_request(f"invalid selector: {error}") from None
    tests = []
    for key, value, equal in selector.terms:
        if key not in ("metadata.name", "metadata.namespace") and key not in _selectable(resource):
            raise bad_request(f"field label not supported: {key}")
        tests.append((_path(key, resource), equal, value))
    if not tests:
        return None
    return lambda obj: all((get(obj) == value) is equal for get, equal, value in tests)


def _selectable(resource: Resource) -> tuple[str, ...]:
    if resource.group == "events.k8s.io":
        return tuple(f.replace("involvedObject", "regarding") for f in _FIELDS["events"]) + _FIELDS["events"]
    return _FIELDS.get(resource.id, ()) + resource.selectable


def _path(key: str, resource: Resource) -> Callable[[Object], str]:
    if resource.plural == "events" and key.startswith("regarding."):
        key = key.replace("regarding", "involvedObject")
    if resource.plural == "events" and key == "source":
        key = "source.component"
    if key == "status.successful":
        key = "status.succeeded"
    steps = key.split(".")
    default = _DEFAULTS.get(key, "")

    def get(obj: Object) -> str:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return default
        return str(value).lower() if isinstance(value, bool) else str(value)

    return get


def selects(selector: Object | None, labels_: dict[str, str]) -> bool:
    """Whether a LabelSelector object matches; None matches nothing, {} everything."""
    if selector is None:
        return False
    return label_selector(from_object(selector, LabelSelector)).matches(labels_)


def text_of(selector: Object | None) -> str:
    """A LabelSelector object as it is written in tables and on scale subresources."""
    if not selector:
        return ""
    terms = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for e in selector.get("matchExpressions") or ():
        values = ",".join(sorted(e.get("values") or ()))
        shown = {"Exists": e["key"], "DoesNotExist": "!" + e["key"]}
        terms.append(shown.get(e["operator"]) or f"{e['key']} {e['operator'].lower()} ({values})")
    return ",".join(terms)
