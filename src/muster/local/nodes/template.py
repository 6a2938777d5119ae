"""What a new node looks like: capacity, labels, taints, and the rack, block and zone it stands in."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from muster.local.api.access import Object
from muster.local.clock import stamp

KIND = "muster.sh/node-kind"
SIMULATED, PROCESS = "simulated", "process"
FAILED = "muster.sh/failed"
RACK, BLOCK, ZONE = (f"topology.kubernetes.io/{level}" for level in ("rack", "block", "zone"))

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class DurationError(ValueError):
    """A text that is no duration."""


def duration(text: str) -> float:
    """Seconds of `90`, `90s`, `1h30m` or `250ms`."""
    parts = list(_DURATION.finditer(text.strip()))
    if not parts or "".join(part[0] for part in parts) != text.strip():
        raise DurationError(f"{text!r} is not a duration; write for example 90s, 10m or 1h30m")
    return sum(float(part[1]) * _SECONDS[part[2] or "s"] for part in parts)


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """Nodes that are all alike but for their name and their place."""

    count: int = 1
    prefix: str = "node"
    kind: str = SIMULATED
    capacity: Mapping[str, str] = field(default_factory=lambda: {"cpu": "64", "memory": "512Gi", "pods": "110"})
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    racks: int = 0
    blocks: int = 0
    zone: str = ""

    def objects(self, now: float) -> Iterator[Object]:
        """The nodes as they register themselves."""
        for number in range(self.count):
            yield self._object(number, now)

    def _object(self, number: int, now: float) -> Object:
        name = f"{self.prefix}-{number}"
        labels = {**self._place(number, name), **self.labels}
        capacity = {"pods": "110", **self.capacity}
        status = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": healthy(now),
            "addresses": [
                {"type": "InternalIP", "address": _address(self.kind, number)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": _info(self.kind, name),
        }
        spec = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        metadata = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}

    def _place(self, number: int, name: str) -> dict[str, str]:
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", KIND: self.kind}
        labels["kubernetes.io/arch"] = _ARCHITECTURES.get(platform.machine(), platform.machine())
        if self.racks:
            labels[RACK] = f"rack-{number * self.racks // self.count}"
        if self.blocks:
            labels[BLOCK] = f"block-{number * self.blocks // self.count}"
        if self.zone:
            labels[ZONE] = self.zone
        return labels


def healthy(now: float) -> list[Object]:
    """The conditions of a node that is well."""
    fine = {
        "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "Ready": ("KubeletReady", "kubelet is posting ready status"),
    }
    times = {"lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now)}
    return [
        {"type": kind, "status": str(kind == "Ready"), "reason": why[0], "message": why[1], **times}
        for kind, why in fine.items()
    ]


def _address(kind: str, number: int) -> str:
    """A real node is this machine; simulated ones live in 172.16.0.0/12, where nobody calls them."""
    if kind == PROCESS:
        return "127.0.0.1"
    return str(IPv4Address((172 << 24) + (16 << 16) + 1 + number))


def _info(kind: str, name: str) -> Object:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": platform.release(),
        "osImage": "Linux",
        "containerRuntimeVersion": f"muster://{kind}",
        "kubeletVersion": "v1.34.0",
        "kubeProxyVersion": "v1.34.0",
        "operatingSystem": "linux",
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }
