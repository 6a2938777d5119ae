"""What a user may do: the roles bound to him, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.local.api.auth import MASTERS, User
from muster.local.api.errors import ApiError, qualified
from muster.local.store import Store

Object = dict[str, Any]

_PREFIX = "rbac.authorization.k8s.io/"
_READ = ["get", "list", "watch"]
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/openapi")


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody wants to do."""

    verb: str
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""  # of requests that are about no resource

    @property
    def resource(self) -> str:
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


def allowed(store: Store, user: User, deed: Deed) -> bool:
    """Whether the roles bound to a user allow a deed."""
    if MASTERS in user.groups:
        return True
    if deed.path and any(deed.path == p or deed.path.startswith(p + "/") for p in _PUBLIC):
        return deed.verb == "get"
    if deed.group in ("authorization.k8s.io", "authentication.k8s.io") and deed.plural.startswith("self"):
        return True
    return any(_covers(rule, deed) for rule in rules(store, user, deed.namespace))


def rules(store: Store, user: User, namespace: str) -> Iterator[Object]:
    """Every rule that applies to a user in a namespace."""
    for _, record in store.scan(_PREFIX + "clusterrolebindings"):
        if _binds(record.obj, user):
            yield from _rules_of(store, record.obj["roleRef"], "")
    if not namespace:
        return
    for _, record in store.scan(_PREFIX + "rolebindings", namespace):
        if _binds(record.obj, user):
            yield from _rules_of(store, record.obj["roleRef"], namespace)


def _binds(binding: Object, user: User) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "User" and name == user.name:
            return True
        if kind == "Group" and name in user.all_groups:
            return True
        account = f"system:serviceaccount:{subject.get('namespace', '')}:{name}"
        if kind == "ServiceAccount" and account == user.name:
            return True
    return False


def _rules_of(store: Store, role: Object, namespace: str) -> list[Object]:
    if role.get("kind") == "ClusterRole":
        record = store.get(_PREFIX + "clusterroles", "", role.get("name", ""))
    else:
        record = store.get(_PREFIX + "roles", namespace, role.get("name", ""))
    return list(record.obj.get("rules") or ()) if record else []


def _covers(rule: Object, deed: Deed) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and deed.verb not in verbs:
        return False
    if deed.path:
        return any(_path_matches(p, deed.path) for p in rule.get("nonResourceURLs") or ())
    groups, names = rule.get("apiGroups") or (), rule.get("resourceNames") or ()
    if "*" not in groups and deed.group not in groups:
        return False
    if names and deed.name not in names:
        return False
    wanted = {"*", deed.resource}
    if deed.subresource:
        wanted.add(f"*/{deed.subresource}")
    return not wanted.isdisjoint(rule.get("resources") or ())


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def refusal(user: User, deed: Deed) -> ApiError:
    """The 403 in the words of the real server."""
    if deed.path:
        words = f'forbidden: User "{user.name}" cannot {deed.verb} path "{deed.path}"'
        return ApiError(403, "Forbidden", words)
    where = f' in the namespace "{deed.namespace}"' if deed.namespace else " at the cluster scope"
    named = qualified(deed.plural, deed.group) + (f' "{deed.name}"' if deed.name else "")
    words = (
        f'{named} is forbidden: User "{user.name}" cannot {deed.verb} resource "{deed.resource}" '
        f'in API group "{deed.group}"{where}'
    )
    details: Object = {"name": deed.name} if deed.name else {}
    if deed.group:
        details["group"] = deed.group
    return ApiError(403, "Forbidden", words, {**details, "kind": deed.plural})


# The roles every cluster has. `view` leaves out secrets, as on a real one.
ROLES: dict[str, list[Object]] = {
    "cluster-admin": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "admin": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    "edit": [
        {
            "apiGroups": [
                "",
                "apps",
                "batch",
                "autoscaling",
                "policy",
                "networking.k8s.io",
                "coordination.k8s.io",
            ],
            "resources": ["*"],
            "verbs": ["create", "delete", "deletecollection", "patch", "update", *_READ],
        },
    ],
    "view": [
        {
            "apiGroups": [""],
            "resources": [
                "configmaps",
                "endpoints",
                "events",
                "limitranges",
                "namespaces",
                "persistentvolumeclaims",
                "pods",
                "pods/log",
                "pods/status",
                "replicationcontrollers",
                "resourcequotas",
                "serviceaccounts",
                "services",
            ],
            "verbs": _READ,
        },
        {
            "apiGroups": ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "discovery.k8s.io"],
            "resources": ["*"],
            "verbs": _READ,
        },
    ],
}
