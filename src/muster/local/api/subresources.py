"""Requests about a part of an object, or a deed done to it: scale, binding, eviction, tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from muster.local.api import types, verbs
from muster.local.api.auth import Authenticator
from muster.local.api.cluster import Cluster
from muster.local.api.decoding import decode
from muster.local.api.errors import bad_request, method_not_allowed
from muster.local.api.options import DeleteOptions
from muster.local.api.writing import Answer, Asked, is_dry_run, options, patched, success

Object = dict[str, Any]

_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_DEFAULT_TOKEN = 3600


def answer(cluster: Cluster, authenticator: Authenticator, asked: Asked) -> Answer | None:
    """The answer to a request about a subresource; None when it is read and written like its object."""
    match asked.target.subresource:
        case "scale":
            return _scale(cluster, asked)
        case "binding":
            return bind(cluster, asked, asked.target.name)
        case "eviction":
            return _evict(cluster, asked)
        case "token":
            return _token(cluster, authenticator, asked)
    return None


def _typed(asked: Asked, type_name: str) -> Object:
    body = decode(asked.body, asked.content_type)
    kind = type_name.rpartition(".")[2]
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is not a {kind}")
    try:
        types.conform(body, type_name)
    except (types.TypeMismatchError, types.MalformedError) as error:
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None
    return body


def _scale(cluster: Cluster, asked: Asked) -> Answer:
    target = asked.target
    current = verbs.scale_of(target.resource, cluster.record(target.resource, target.namespace, target.name).obj)
    if asked.method == "GET":
        return Answer(200, orjson.dumps(current))
    if asked.method == "PUT":
        wanted = _typed(asked, "autoscaling.v1.Scale")
    elif asked.method == "PATCH":
        kind = asked.content_type.partition(";")[0].strip()
        change = decode(asked.body, "application/json")
        wanted = patched(target.resource, current, change, kind)
        if wanted["metadata"].get("resourceVersion") == current["metadata"]["resourceVersion"]:
            del wanted["metadata"]["resourceVersion"]
    else:
        raise method_not_allowed()
    if not isinstance(wanted.get("spec") or {}, dict):
        raise bad_request("spec must be an object")
    scale = verbs.set_scale(cluster, target.resource, target.namespace, target.name, wanted, options(asked))
    return Answer(200, orjson.dumps(scale))


def bind(cluster: Cluster, asked: Asked, name: str) -> Answer:
    """Answer a Binding, posted to the pod or to the collection of bindings."""
    if asked.method != "POST":
        raise method_not_allowed()
    binding = _typed(asked, "core.v1.Binding")
    name = name or str((binding.get("metadata") or {}).get("name") or "")
    verbs.bind(cluster, asked.target.namespace, name, binding, options(asked))
    return Answer(201, success(code=201))


def _evict(cluster: Cluster, asked: Asked) -> Answer:
    if asked.method != "POST":
        raise method_not_allowed()
    body = _typed(asked, "policy.v1.Eviction")
    wanted = body.get("deleteOptions") or {}
    dry = any(is_dry_run(d) for d in wanted.get("dryRun") or [asked.params.get("dryRun") or ""])
    conditions = wanted.get("preconditions") or {}
    delete = DeleteOptions(
        wanted.get("gracePeriodSeconds"),
        wanted.get("propagationPolicy") or "",
        conditions.get("uid", ""),
        conditions.get("resourceVersion", ""),
        dry,
    )
    verbs.evict(cluster, asked.target.namespace, asked.target.name, delete)
    return Answer(201, success(code=201))


def _token(cluster: Cluster, authenticator: Authenticator, asked: Asked) -> Answer:
    if asked.method != "POST":
        raise method_not_allowed()
    target = asked.target
    account = cluster.record(target.resource, target.namespace, target.name).obj
    body = _typed(asked, "authentication.v1.TokenRequest")
    spec = body.get("spec") or {}
    seconds = spec.get("expirationSeconds") or _DEFAULT_TOKEN
    if not _SHORTEST_TOKEN <= seconds <= _LONGEST_TOKEN:
        raise bad_request("spec.expirationSeconds: may not specify a duration less than 10 minutes")
    token = authenticator.issue(target.namespace, target.name, account["metadata"]["uid"], seconds)
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    given: Object = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "spec": {"audiences": spec.get("audiences") or [], "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }
    return Answer(201, orjson.dumps(given))
