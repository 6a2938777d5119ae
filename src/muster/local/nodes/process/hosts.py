"""Names inside a pod: what cluster DNS would answer, written as /etc/hosts.

A pod of a headless Service has a name of its own (`train-0.train`), a Service has one for all its ready
pods, and both have the long forms that end in `svc.cluster.local`. A Service with a cluster address gets
the addresses of its pods instead: there is no proxy on this machine, so its ports must be those of the
pods.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from muster.local.api.access import Object

DOMAIN = "cluster.local"
_BASE = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


@dataclass(frozen=True, slots=True)
class Name:
    """An address and what it is called, without the forms that leave the namespace or the domain out."""

    namespace: str
    address: str
    name: str

    def line(self, reader: str) -> str:
        """The line for a pod of namespace `reader`: only there do the short forms mean this."""
        full = f"{self.name}.{self.namespace}.svc"
        names = [f"{full}.{DOMAIN}", full, f"{self.name}.{self.namespace}"]
        if reader == self.namespace:
            names.append(self.name)
        return f"{self.address}\t{' '.join(names)}\n"


def names(pods: Iterable[Object], services: Iterable[Object]) -> list[Name]:
    """All names that resolve, in the order of the pods, so that a file of them mostly grows at its end."""
    found = []
    by_namespace: dict[str, list[Object]] = {}
    for service in services:
        by_namespace.setdefault(service["metadata"]["namespace"], []).append(service)
    for pod in pods:
        for service in by_namespace.get(pod["metadata"]["namespace"], ()):
            found += _of(pod, service)
    return found


def hosts_file(pod: Object, address: str, known: Iterable[Name]) -> str:
    """The file of one pod: its own names first, so that it finds itself by any of them."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    own = hostname(pod)
    if spec.get("subdomain"):
        full = f"{own}.{spec['subdomain']}.{namespace}.svc.{DOMAIN}"
        mine = f"{address}\t{full} {own}\n"
    else:
        mine = f"{address}\t{own}\n"
    aliases = "".join(
        f"{alias['ip']}\t{' '.join(alias.get('hostnames') or ())}\n" for alias in spec.get("hostAliases") or ()
    )
    return _BASE + mine + aliases + "".join(name.line(namespace) for name in known)


def hostname(pod: Object) -> str:
    """What `hostname` prints in the pod."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def _of(pod: Object, service: Object) -> list[Name]:
    spec, status = service.get("spec") or {}, pod.get("status") or {}
    selector, address = spec.get("selector") or {}, status.get("podIP")
    labels = pod["metadata"].get("labels") or {}
    if not selector or not address or not selector.items() <= labels.items() or status.get("phase") != "Running":
        return []
    if not spec.get("publishNotReadyAddresses") and not _ready(pod):
        return []
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    found = [Name(namespace, address, name)]
    if pod["spec"].get("subdomain") == name and pod["spec"].get("hostname"):
        found.insert(0, Name(namespace, address, f"{hostname(pod)}.{name}"))
    return found


def _ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    going = "deletionTimestamp" in pod["metadata"]
    return not going and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def rewrite(path: Path, text: str) -> None:
    """Change the file where it is: pods have this very file mounted, and a new one would not be theirs."""
    data = text.encode()
    if path.exists() and path.read_bytes() == data:
        return
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, data, 0)
        os.ftruncate(file, len(data))
    finally:
        os.close(file)
