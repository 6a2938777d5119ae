"""Answers to create, update, patch and delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from muster.local.api import applying, reading
from muster.local.api.auth import User
from muster.local.api.cluster import Cluster
from muster.local.api.decoding import conformed, decode
from muster.local.api.errors import bad_request, method_not_allowed, unsupported_media_type
from muster.local.api.options import DeleteOptions, Options
from muster.local.api.patches import json_patch, merge
from muster.local.api.reading import Form
from muster.local.api.requests import Target, parse_bool, parse_int
from muster.local.api.resources import EVENTS_V1, Resource
from muster.local.api.strategic import strategic_merge

Object = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# Kinds whose deletion answers with the object, not with a Status; clients decode what comes.
_ANSWER_WITH_OBJECT = frozenset(
    {"pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims", "podtemplates"}
)
_VALIDATIONS = ("Ignore", "Warn", "Strict")


@dataclass(slots=True)
class Asked:
    """One request, read and attributed."""

    method: str
    target: Target
    params: Mapping[str, str]
    body: bytes
    content_type: str
    user: User
    agent: str
    shown: Form = field(default_factory=Form)


@dataclass(slots=True)
class Answer:
    """What goes back."""

    status: int
    body: bytes
    warnings: list[str] = field(default_factory=list)


def options(asked: Asked) -> Options:
    """The write options in a request's parameters."""
    validation = asked.params.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"'
        )
    manager = asked.params.get("fieldManager") or asked.agent.partition("/")[0][:128] or "unknown"
    force = parse_bool(asked.params.get("force", ""))
    return Options(is_dry_run(asked.params.get("dryRun")), asked.user.name, manager, validation, force)


def is_dry_run(text: str | None) -> bool:
    if text in (None, ""):
        return False
    if text != "All":
        raise bad_request(f'dryRun: Unsupported value: "{text}": supported values: "All"')
    return True


def create(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    if target.name or (target.resource.namespaced and not target.namespace):
        raise method_not_allowed()
    wanted = options(asked)
    obj = conformed(cluster, target.resource, decode(asked.body, asked.content_type), wanted)
    obj["metadata"].pop("managedFields", None)
    created = cluster.create(target.resource, as_stored(target.resource, obj), target.namespace, wanted)
    return _answer(cluster, asked, created, 201, wanted)


_DEPRECATED = {
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_ONLY_IN_EVENTS_V1 = {"regarding", "note", "deprecatedSource", "reportingController", *_DEPRECATED}


def as_stored(resource: Resource, obj: Object) -> Object:
    """An event of events.k8s.io in the words of the core group, in which events are stored; else as it is."""
    if resource.group != EVENTS_V1:
        return obj
    core = {name: value for name, value in obj.items() if name not in _ONLY_IN_EVENTS_V1}
    core["involvedObject"], core["message"] = obj.get("regarding") or {}, obj.get("note", "")
    core["source"] = obj.get("deprecatedSource") or {}
    for old, new in _DEPRECATED.items():
        if obj.get(old) is not None:
            core[new] = obj[old]
    core["reportingComponent"] = obj.get("reportingController", "")
    core["apiVersion"] = "v1"
    return core


def update(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    if not target.name:
        raise method_not_allowed()
    wanted = options(asked)
    new = conformed(cluster, target.resource, decode(asked.body, asked.content_type), wanted)
    if not new["metadata"].get("name"):
        raise bad_request("name must be provided")
    stored = as_stored(target.resource, new)
    written = cluster.replace(target.resource, target.namespace, target.name, stored, wanted, _written_part(target))
    return _answer(cluster, asked, written, 200, wanted)


def _written_part(target: Target) -> str:
    return target.subresource if target.subresource in ("status", "finalize") else ""


def patch(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    if not target.name:
        raise method_not_allowed()
    wanted = options(asked)
    kind = asked.content_type.partition(";")[0].strip()
    if kind == APPLY_PATCH:
        body = decode(asked.body, kind)
        applied, made = applying.apply(cluster, target, body, wanted, "fieldManager" in asked.params)
        return _answer(cluster, asked, applied, 201 if made else 200, wanted)
    check_kind(target.resource, kind)
    record = cluster.record(target.resource, target.namespace, target.name)
    change = decode(asked.body, "application/json")
    base = reading.stamped(target.resource, record.obj)
    new = conformed(cluster, target.resource, patched(target.resource, base, change, kind), wanted)
    given = new["metadata"].get("resourceVersion")
    if given == base["metadata"].get("resourceVersion"):
        new["metadata"] = {k: v for k, v in new["metadata"].items() if k != "resourceVersion"}
    stored = as_stored(target.resource, new)
    written = cluster.replace(target.resource, target.namespace, target.name, stored, wanted, _written_part(target))
    return _answer(cluster, asked, written, 200, wanted)


def check_kind(resource: Resource, kind: str) -> None:
    """Refuse a patch of a kind this resource does not take. Raises ApiError 415."""
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not resource.custom:
        accepted.insert(2, STRATEGIC_PATCH)
    if kind not in accepted:
        words = "the body of the request was in an unknown format - accepted media types include: "
        raise unsupported_media_type(words + ", ".join(accepted))


def patched(resource: Resource, base: Object, change: Any, kind: str) -> Object:
    """An object after a patch of any of the three kinds; the top level and metadata are new."""
    check_kind(resource, kind)
    if kind == JSON_PATCH:
        new = json_patch(base, change)
    else:
        if not isinstance(change, dict):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
            )
        new = merge(base, change) if kind == MERGE_PATCH else strategic_merge(base, change, resource.type)
    if not isinstance(new.get("metadata"), dict):
        raise bad_request("metadata must be an object")
    return {**new, "metadata": dict(new["metadata"])}


def delete_options(asked: Asked) -> DeleteOptions:
    """What a deletion asks for, in its body or its parameters."""
    body: Object = {}
    if asked.body.strip():
        decoded = decode(asked.body, asked.content_type)
        if not isinstance(decoded, dict):
            raise bad_request("DeleteOptions must be an object")
        body = decoded
    grace = body.get("gracePeriodSeconds")
    if "gracePeriodSeconds" in asked.params:
        grace = parse_int(asked.params["gracePeriodSeconds"], "gracePeriodSeconds")
    policy = asked.params.get("propagationPolicy") or body.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in asked.params:
        orphan = parse_bool(asked.params["orphanDependents"])
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    if policy not in ("", "Background", "Foreground", "Orphan"):
        raise bad_request(
            f'propagationPolicy: Unsupported value: "{policy}": supported values: "Background", "Foreground", "Orphan"'
        )
    if grace is not None and type(grace) is not int:
        raise bad_request("gracePeriodSeconds must be an integer")
    dry = body.get("dryRun") or ([asked.params["dryRun"]] if asked.params.get("dryRun") else [])
    if not isinstance(dry, list):
        raise bad_request("dryRun must be a list")
    conditions = body.get("preconditions") or {}
    if not isinstance(conditions, dict):
        raise bad_request("preconditions must be an object")
    return DeleteOptions(
        grace,
        policy,
        str(conditions.get("uid") or ""),
        str(conditions.get("resourceVersion") or ""),
        any(is_dry_run(str(d)) for d in dry),
    )


def delete(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    if not target.name:
        return _delete_collection(cluster, asked)
    if target.subresource:
        raise method_not_allowed()
    obj, gone = cluster.delete(target.resource, target.namespace, target.name, delete_options(asked))
    if not gone or target.resource.id in _ANSWER_WITH_OBJECT:
        return Answer(200, reading.single(cluster, target.resource, obj, Form()))
    details = {"name": target.name, "kind": target.resource.plural, "uid": obj["metadata"]["uid"]}
    if target.resource.group:
        details["group"] = target.resource.group
    return Answer(200, success(details))


def success(details: Object | None = None, code: int = 0) -> bytes:
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    if code:
        status["code"] = code
    return orjson.dumps(status)


def _delete_collection(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    wanted = delete_options(asked)
    tests = reading.predicates(target.resource, asked.params)
    found = [
        (key, record.obj)
        for key, record in cluster.scan(target.resource, target.namespace)
        if all(test(record.obj) for test in tests)
    ]
    deleted = [cluster.delete(target.resource, *key, wanted)[0] for key, _ in found]
    resource = target.resource
    listed: Object = {"kind": resource.kind + "List", "apiVersion": resource.api_version}
    listed["metadata"] = {"resourceVersion": str(cluster.store.revision)}
    listed["items"] = [reading.stamped(resource, obj) for obj in deleted]
    return Answer(200, orjson.dumps(listed))


def _answer(cluster: Cluster, asked: Asked, obj: Object, status: int, wanted: Options) -> Answer:
    resource = asked.target.resource
    if not asked.shown.shape and not wanted.dry_run and obj.get("apiVersion") == resource.api_version:
        meta = obj["metadata"]
        record = cluster.store.get(resource.id, meta.get("namespace", ""), meta["name"])
        if record is not None and record.obj is obj:
            return Answer(status, record.raw, wanted.warnings)
    return Answer(status, reading.single(cluster, resource, obj, asked.shown), wanted.warnings)
