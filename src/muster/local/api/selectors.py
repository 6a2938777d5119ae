"""Label and field selectors of a request, as predicates over objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from muster.local.api.errors import bad_request
from muster.local.api.resources import Resource

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_SET = re.compile(r"\s*(?P<key>[^\s!=,()<>]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_ONE = re.compile(
    r"\s*(?P<not>!?)\s*(?P<key>[^\s!=,()<>]+)\s*((?P<op>==|!=|=|<|>)\s*(?P<value>[^\s,()=!<>]*))?\s*"
)

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
    wanted = []
    rest = text
    while rest:
        match = _SET.match(rest) or _ONE.match(rest)
        if match is None or (match.end() < len(rest) and rest[match.end()] != ","):
            raise bad_request(f"unable to parse requirement: invalid label selector {text!r}")
        wanted.append(_requirement(match))
        rest = rest[match.end() + 1 :]
        if not rest and text.rstrip().endswith(","):
            raise bad_request("unable to parse requirement: found '', expected: identifier after ','")
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in wanted)


def _requirement(match: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    key, op = match["key"], match["op"]
    if not _KEY.fullmatch(key):
        raise bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
        )
    if op in ("in", "notin"):
        values = frozenset(v.strip() for v in match["values"].split(","))
        _check_values(key, values)
        return (lambda ls: ls.get(key) in values) if op == "in" else (lambda ls: ls.get(key) not in values)
    if op is None:
        return (lambda ls: key not in ls) if match["not"] else (lambda ls: key in ls)
    if match["not"]:
        raise bad_request(f"unable to parse requirement: found '{op}', expected: ',' or 'end of string'")
    value = match["value"]
    _check_values(key, frozenset({value}))
    if op in ("<", ">"):
        return _ordered(key, op, value)
    return (lambda ls: ls.get(key) != value) if op == "!=" else (lambda ls: ls.get(key) == value)


def _ordered(key: str, op: str, value: str) -> Callable[[dict[str, str]], bool]:
    if not re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        raise bad_request("unable to parse requirement: for 'Gt', 'Lt' operators, value must be an integer")
    bound = int(value)

    def test(ls: dict[str, str]) -> bool:
        have = ls.get(key, "")
        if not re.fullmatch(r"-?\d{1,18}", have, re.ASCII):
            return False
        return int(have) < bound if op == "<" else int(have) > bound

    return test


def _check_values(key: str, values: frozenset[str]) -> None:
    for value in values:
        if not _VALUE.fullmatch(value):
            raise bad_request(
                f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": a valid label must be '
                "an empty string or consist of alphanumeric characters, '-', '_' or '.'"
            )


@lru_cache(maxsize=1024)
def fields(text: str, resource: Resource) -> Predicate | None:
    """A predicate for a field selector; None when everything matches. Raises ApiError 400."""
    tests = []
    for term in filter(None, text.split(",")):
        key, op, value = _split(term)
        if key not in ("metadata.name", "metadata.namespace") and key not in _selectable(resource):
            raise bad_request(f"field label not supported: {key}")
        tests.append((_path(key, resource), op == "!=", value))
    if not tests:
        return None
    return lambda obj: all((get(obj) == value) is not negated for get, negated, value in tests)


def exact_name(text: str) -> str:
    """The name a field selector pins down, "" when it does not."""
    for term in filter(None, text.split(",")):
        if term.startswith("metadata.name=") and term.count("=") <= 2:
            return term.rpartition("=")[2]
    return ""


def _split(term: str) -> tuple[str, str, str]:
    for op in ("!=", "==", "="):
        key, found, value = term.partition(op)
        if found:
            return key.strip(), op, value.strip()
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


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
    if any(labels_.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(e, labels_) for e in selector.get("matchExpressions") or ())


def _expression(expression: Object, labels_: dict[str, str]) -> bool:
    have, values = labels_.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return have in values
        case "NotIn":
            return have not in values
        case "Exists":
            return have is not None
        case _:
            return have is None


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
