"""What the server serves, told to clients: group and resource lists, the old way and aggregated."""

from __future__ import annotations

import platform
from typing import Any

from muster.local.api.resources import Catalogue, Resource

Object = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERSION = ("1", "37")
_SUB_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "exec": ("", "v1", "PodExecOptions"),
}
_SUB_VERBS = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "log": ("get",),
    "exec": ("create", "get"),
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "ephemeralcontainers": ("get", "patch", "update"),
    "resize": ("get", "patch", "update"),
}


def version() -> Object:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    major, minor = _VERSION
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+muster",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": f"linux/{machine}",
    }


def core_versions(address: str) -> Object:
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def group_list(kinds: Catalogue) -> Object:
    groups = [_group(kinds, group) for group in kinds.groups()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Catalogue, name: str) -> Object:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, name)}


def _group(kinds: Catalogue, name: str) -> Object:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in kinds.versions(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(kinds: Catalogue, group_: str, version_: str) -> Object:
    api_version = f"{group_}/{version_}" if group_ else version_
    resources = [entry for r in kinds.within(group_, version_) for entry in _entries(r)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": resources,
    }


def _entries(resource: Resource) -> list[Object]:
    main: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short:
        main["shortNames"] = list(resource.short)
    if resource.categories:
        main["categories"] = list(resource.categories)
    return [main, *(_sub_entry(resource, s) for s in resource.subresources)]


def _sub_entry(resource: Resource, subresource: str) -> Object:
    group_, version_, kind = _sub_kind(resource, subresource)
    entry: Object = {
        "name": f"{resource.plural}/{subresource}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": list(_SUB_VERBS[subresource]),
    }
    if (group_, version_) != (resource.group, resource.version):
        entry["group"], entry["version"] = group_, version_
    return entry


def _sub_kind(resource: Resource, subresource: str) -> tuple[str, str, str]:
    return _SUB_KINDS.get(subresource, (resource.group, resource.version, resource.kind))


def aggregated(kinds: Catalogue, *, core: bool) -> Object:
    """The whole of discovery in one document, for clients that know it."""
    names = [""] if core else kinds.groups()
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": v,
                    "resources": [_aggregated_entry(r) for r in kinds.within(name, v)],
                    "freshness": "Current",
                }
                for v in kinds.versions(name)
            ],
        }
        for name in names
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_entry(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short:
        entry["shortNames"] = list(resource.short)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": s,
                "responseKind": _kind(*_sub_kind(resource, s)),
                "verbs": list(_SUB_VERBS[s]),
            }
            for s in resource.subresources
        ]
    return entry


def _kind(group_: str, version_: str, kind: str) -> Object:
    return {"group": group_, "version": version_, "kind": kind}
