"""From the bytes of a request to an object of a kind: format, types, unknown fields."""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from muster.local.api import protobuf, types
from muster.local.api.cluster import Cluster
from muster.local.api.errors import ApiError, bad_request, unsupported_media_type
from muster.local.api.options import Options
from muster.local.api.resources import Resource

Object = dict[str, Any]

PROTOBUF = "application/vnd.kubernetes.protobuf"
_META = "meta.v1.ObjectMeta"
_DEEPEST = 200
_WORKAROUND = (
    "the local cluster reads JSON and YAML, not protobuf; let kubectl print the object and apply that: "
    "kubectl create ... --dry-run=client -o yaml | kubectl apply -f -"
)


def decode(body: bytes, content_type: str) -> Any:
    """The JSON or YAML of a request. Python clients send JSON as text/plain."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == PROTOBUF or body.startswith(protobuf.MAGIC):
        return _from_protobuf(body)
    try:
        if kind in ("application/yaml", "application/apply-patch+yaml", "text/yaml"):
            value = _from_json(body) if body.lstrip()[:1] == b"{" else _from_yaml(body)
        elif kind in ("", "application/json", "text/plain", "*/*") or kind.endswith("+json"):
            value = _from_json(body)
        else:
            accepted = "application/json, application/yaml"
            raise unsupported_media_type(
                f"the body of the request was in an unknown format - accepted media types include: {accepted}"
            )
    except (orjson.JSONDecodeError, yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:200]
        raise bad_request(f"the object provided is unrecognized (must be of type {{}}): {words}") from None
    nested = body.count(b"{") + body.count(b"[") > _DEEPEST or kind.endswith("yaml")
    if nested and isinstance(value, (dict, list)) and _too_deep(value):
        raise bad_request(f"the object is nested more than {_DEEPEST} levels deep")
    return value


def _from_protobuf(body: bytes) -> Any:
    try:
        value = protobuf.decode(body)
    except ValueError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {{}}): {error}") from None
    if value is None:
        raise unsupported_media_type(_WORKAROUND)
    return value


def _from_json(body: bytes) -> Any:
    return orjson.loads(body)


def _from_yaml(body: bytes) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if b"*" in body and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, Loader=loader)):
        raise ValueError("aliases are not supported: a few of them could unfold to any size")
    value = yaml.load(body, Loader=loader)  # noqa: S506 - a safe loader
    # Through JSON, so that dates and odd keys become what a JSON client would have sent.
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str))


def _too_deep(value: Any) -> bool:
    """Whether an object is nested more than can be written back."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def as_object(value: Any, resource: Resource) -> Object:
    """The decoded value as an object of the kind, its kind and version checked and filled in."""
    kind = resource.kind
    if not isinstance(value, dict):
        raise _unreadable(resource, f"json: cannot unmarshal into Go value of type {kind}")
    if value.get("apiVersion") not in (None, "", resource.api_version):
        words = f"does not match the expected API version ({resource.api_version})"
        raise bad_request(f"the API version in the data ({value['apiVersion']}) {words}")
    if value.get("kind") not in (None, "", kind):
        raise bad_request(f"the kind in the data ({value['kind']}) does not match the expected kind ({kind})")
    value["kind"], value["apiVersion"] = kind, resource.api_version
    if value.get("metadata") is None:
        value["metadata"] = {}
    return value


def conformed(cluster: Cluster, resource: Resource, obj: Object, options: Options) -> Object:
    """The object with only the fields its kind knows; unknown ones are told as the request asks."""
    obj = as_object(obj, resource)
    try:
        if custom := cluster.custom.get((resource.id, resource.version)):
            unknown = [f"metadata.{u}" for u in types.conform(_meta(obj), _META)]
            unknown += custom.prune(obj)
        else:
            unknown = types.conform(obj, resource.type)
    except (types.TypeMismatchError, types.MalformedError) as error:
        raise _unreadable(resource, str(error)) from None
    if unknown and options.validation != "Ignore":
        words = [f'unknown field "{path}"' for path in unknown]
        if options.validation == "Strict":
            raise _unreadable(resource, "strict decoding error: " + ", ".join(words))
        options.warnings += words
    return obj


def _meta(obj: Object) -> Object:
    meta = obj["metadata"]
    if not isinstance(meta, dict):
        raise types.TypeMismatchError("value", "v1.ObjectMeta", ["metadata"])
    return meta


def _unreadable(resource: Resource, why: str) -> ApiError:
    kind = resource.kind
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}')
