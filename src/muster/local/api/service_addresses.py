"""Addresses and node ports for services. The addresses are names only: nothing listens on them."""

from __future__ import annotations

import ipaddress
from typing import Any

from muster.local.api.errors import ApiError
from muster.local.store import Store

Object = dict[str, Any]

_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_NODE_PORTS = range(30000, 32768)


def assign(store: Store, service: Object) -> None:
    """Give a new service its cluster address, and its node ports if it has any."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        if spec.get("clusterIP") == "None":
            spec["clusterIPs"] = ["None"]
        return
    others = [record.obj["spec"] for _, record in store.scan("services")]
    if not spec.get("clusterIP"):
        taken = {o.get("clusterIP") for o in others}
        spec["clusterIP"] = next(str(a) for a in _NETWORK.hosts() if str(a) not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        _assign_ports(spec, others)


def _assign_ports(spec: Object, others: list[Object]) -> None:
    taken = {p.get("nodePort") for o in others for p in o.get("ports") or ()}
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            free = next((n for n in _NODE_PORTS if n not in taken), None)
            if free is None:
                raise ApiError(422, "Invalid", "no node port is free")
            port["nodePort"] = free
        taken.add(port["nodePort"])
