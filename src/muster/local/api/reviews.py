"""Reviews: clients asking what they may do and who they are. Nothing of them is stored."""

from __future__ import annotations

from typing import Any

import orjson

from muster.local.api import rbac
from muster.local.api.auth import Authenticator, User
from muster.local.api.cluster import Cluster
from muster.local.api.decoding import conformed, decode
from muster.local.api.errors import method_not_allowed
from muster.local.api.options import Options
from muster.local.api.writing import Answer, Asked

Object = dict[str, Any]

GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


def answer(cluster: Cluster, authenticator: Authenticator, asked: Asked) -> Answer:
    """Answer a review."""
    if asked.method != "POST":
        raise method_not_allowed()
    body = decode(asked.body, asked.content_type)
    review = conformed(cluster, asked.target.resource, body, Options())
    spec = review.get("spec") or {}
    match asked.target.resource.kind:
        case "TokenReview":
            review["status"] = _token(authenticator, spec)
        case "SelfSubjectReview":
            review["status"] = {"userInfo": _info(asked.user)}
        case "SelfSubjectRulesReview":
            review["status"] = _rules(cluster, asked.user, spec.get("namespace", ""))
        case "SelfSubjectAccessReview":
            review["status"] = _access(cluster, asked.user, spec)
        case _:
            groups = tuple(spec.get("groups") or ())
            review["status"] = _access(cluster, User(spec.get("user", ""), groups), spec)
    return Answer(201, orjson.dumps(review))


def _token(authenticator: Authenticator, spec: Object) -> Object:
    user = authenticator.user_of(spec.get("token", ""))
    if user is None:
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _info(user)}


def _info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.all_groups)}
    return {**info, "uid": user.uid} if user.uid else info


def _access(cluster: Cluster, user: User, spec: Object) -> Object:
    about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if about is not None:
        deed = rbac.Deed(
            about.get("verb", ""),
            about.get("group", ""),
            about.get("resource", ""),
            about.get("namespace", ""),
            about.get("name", ""),
            about.get("subresource", ""),
        )
    else:
        deed = rbac.Deed((path or {}).get("verb", ""), path=(path or {}).get("path", "") or "/")
    return {"allowed": rbac.allowed(cluster.store, user, deed)}


def _rules(cluster: Cluster, user: User, namespace: str) -> Object:
    found = list(rbac.rules(cluster.store, user, namespace))
    if "system:masters" in user.groups:
        found = rbac.ROLES["cluster-admin"]
    return {
        "resourceRules": [r for r in found if "resources" in r],
        "nonResourceRules": [r for r in found if "nonResourceURLs" in r],
        "incomplete": False,
    }
