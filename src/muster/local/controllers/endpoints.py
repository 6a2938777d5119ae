"""Endpoints: the addresses behind a Service, for clients that ask the API instead of DNS."""

from __future__ import annotations

from collections.abc import Iterable

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.actions import Action, Create, Patch

RESOURCE = "endpoints"


def sync(service: Object, pods: Iterable[Object], present: Object | None) -> list[Action]:
    """Bring the Endpoints of a Service up to date; a Service without a selector is its owner's business."""
    wanted = f.spec(service).get("selector")
    if not wanted or f.going(service):
        return []
    chosen = [pod for pod in pods if wanted.items() <= f.labels(pod).items()]
    subsets = _subsets(service, chosen)
    if present is None:
        metadata: Object = {"name": f.name(service), "namespace": f.namespace(service), "labels": f.labels(service)}
        metadata["ownerReferences"] = [f.owner_reference(service)]
        body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}
        return [Create(RESOURCE, body)]
    if (present.get("subsets") or []) != subsets:
        return [Patch(RESOURCE, present, {"subsets": subsets or None})]
    return []


def _subsets(service: Object, pods: list[Object]) -> list[Object]:
    """One subset per set of port numbers: named target ports may differ from pod to pod."""
    groups: dict[str, Object] = {}
    everybody = f.spec(service).get("publishNotReadyAddresses", False)
    for pod in sorted(pods, key=f.name):
        if not f.status(pod).get("podIP") or f.ended(pod) or (f.going(pod) and not everybody):
            continue
        ports = _ports(service, pod)
        subset = groups.setdefault(repr(ports), {"ports": ports} if ports else {})
        key = "addresses" if f.ready(pod) or everybody else "notReadyAddresses"
        subset.setdefault(key, []).append(_address(service, pod))
    return list(groups.values())


def _address(service: Object, pod: Object) -> Object:
    address: Object = {"ip": f.status(pod)["podIP"], "nodeName": f.spec(pod).get("nodeName")}
    spec = f.spec(pod)
    if spec.get("hostname") and spec.get("subdomain") == f.name(service):
        address["hostname"] = spec["hostname"]
    target = {"kind": "Pod", "namespace": f.namespace(pod), "name": f.name(pod), "uid": f.uid(pod)}
    return {**address, "targetRef": target}


def _ports(service: Object, pod: Object) -> list[Object]:
    found = []
    for port in f.spec(service).get("ports") or ():
        number = _target(port, pod)
        if number is not None:
            named = {"name": port["name"]} if port.get("name") else {}
            found.append({**named, "port": number, "protocol": port.get("protocol", "TCP")})
    return found


def _target(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    names = {p.get("name"): p["containerPort"] for c in f.spec(pod)["containers"] for p in c.get("ports") or ()}
    found = names.get(target)
    return None if found is None else int(found)
