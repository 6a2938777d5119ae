"""What a URL asks for: verb, kind, object, subresource."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from muster.local.api.errors import bad_request, no_such_path
from muster.local.api.resources import Catalogue, Resource

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})


@dataclass(frozen=True, slots=True)
class Target:
    """The object or collection a request is about."""

    resource: Resource
    namespace: str
    name: str
    subresource: str


def parse_bool(text: str) -> bool:
    """Booleans as Go reads them: clients send 1, true and True."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise bad_request(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def parse_int(text: str, name: str) -> int:
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 18:
        raise bad_request(f'invalid value for {name}: strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def target(catalogue: Catalogue, path: str) -> Target:
    """Find what a path under /api or /apis names. Raises ApiError 404."""
    parts = [unquote(p) for p in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = catalogue.by_path.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or not all(rest):
        raise no_such_path()
    if namespace and not resource.namespaced:
        raise no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in resource.subresources:
        raise no_such_path()
    if resource.namespaced and name and not namespace:
        raise no_such_path()
    return Target(resource, namespace, name, subresource)


def verb(method: str, found: Target, watching: bool) -> str:
    """The verb a request needs rights for."""
    if method in ("GET", "HEAD"):
        return "get" if found.name else "watch" if watching else "list"
    if method == "DELETE":
        return "delete" if found.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
