"""A container's environment and command line, as Kubernetes builds them: a pure function of pod, node and
lookups.
"""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.local.api.access import Object
from muster.objects.quantity import QuantityError, milli_units

Lookup = Callable[[str, str], Object | None]

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TERM")
_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


class ConfigError(Exception):
    """The container cannot be configured as its pod asks; the message is what the pod's status says."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a field reference can ask for that the pod's own spec does not say."""

    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, str]


def inherited() -> dict[str, str]:
    """What stands in for the image's environment: what finds programs on this machine, and no secrets."""
    return {key: os.environ[key] for key in INHERITED if key in os.environ}


def environment(pod: Object, container: Object, facts: Facts, lookup: Lookup) -> dict[str, str]:
    """The variables of one container, in order, later ones expanding earlier ones."""
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        env |= _whole(source, lookup)
    for variable in container.get("env") or ():
        value = _value(pod, container, variable, facts, lookup)
        if value is not None:
            env[variable["name"]] = expand(value, env)
    return env


def command_line(container: Object, env: Mapping[str, str]) -> list[str]:
    """What to execute: command and args with references expanded. Without a command there is only the
    image.
    """
    command = container.get("command") or []
    if not command:
        raise ConfigError("no command specified: this node runs no images, so the container needs a command")
    return [expand(word, env) for word in [*command, *(container.get("args") or ())]]


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes its value, `$$` a dollar, and an unknown name stays as it is written."""
    return _REFERENCE.sub(lambda m: "$" if m[1] == "$" else env.get(m[2], m[0]), text)


def field_value(pod: Object, path: str, facts: Facts) -> str:
    """What `fieldRef.fieldPath` stands for."""
    metadata, spec = pod["metadata"], pod["spec"]
    if keyed := _KEYED.fullmatch(path):
        return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{_escaped(value)}"' for key, value in sorted(pairs.items()))
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
    }
    if path not in plain:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(plain[path] or "")


def resource_value(pod: Object, container: Object, reference: Object, facts: Facts) -> str:
    """What `resourceFieldRef` stands for; a limit that is not set is what the node has."""
    name = reference.get("containerName")
    if name:
        every = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
        container = next((c for c in every if c["name"] == name), container)
    kind, _, resource = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    written = (resources.get(kind) or {}).get(resource)
    if written is None:
        limit = (resources.get("limits") or {}).get(resource) or facts.allocatable.get(resource)
        written = limit if kind == "limits" or "limits" in resources else "0"
    divisor = reference.get("divisor") or "0"
    try:
        amount, unit = milli_units(str(written or "0")), milli_units(str(divisor)) or 1000
    except QuantityError as error:
        raise ConfigError(str(error)) from error
    return str(math.ceil(amount / unit))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _whole(source: Object, lookup: Lookup) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for key, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        if key in source:
            found = _found(source[key], resource, lookup)
            return {prefix + name: value for name, value in texts(found).items()}
    return {}


def _value(pod: Object, container: Object, variable: Object, facts: Facts, lookup: Lookup) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value") or "")
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], facts)
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"], facts)
    for key, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if key in source:
            return _key(source[key], resource, lookup)
    raise ConfigError(f"environment variable {variable['name']}: valueFrom has no source this node knows")


def _key(reference: Object, resource: str, lookup: Lookup) -> str | None:
    found = texts(_found(reference, resource, lookup))
    key = reference["key"]
    if key not in found and not reference.get("optional"):
        kind = "ConfigMap" if resource == "configmaps" else "Secret"
        raise ConfigError(f"couldn't find key {key} in {kind} {reference.get('name')}")
    return found.get(key)


def _found(reference: Object, resource: str, lookup: Lookup) -> Object:
    found = lookup(resource, reference["name"])
    if found is None and not reference.get("optional"):
        raise ConfigError(f'{resource.removesuffix("s")} "{reference["name"]}" not found')
    return found or {}


def texts(obj: Object) -> dict[str, str]:
    """The entries of a config map or secret as text."""
    return {key: value.decode(errors="surrogateescape") for key, value in contents(obj).items()}


def contents(obj: Object) -> dict[str, bytes]:
    """The entries of a config map or secret as bytes."""
    plain = obj.get("stringData") or {} if obj.get("kind") == "Secret" else obj.get("data") or {}
    coded = obj.get("data") or {} if obj.get("kind") == "Secret" else obj.get("binaryData") or {}
    found = {key: value.encode() for key, value in plain.items()}
    return found | {key: base64.b64decode(value) for key, value in coded.items()}
