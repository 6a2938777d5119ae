"""A scheduler of a few lines, so that pods run in these tests: with GPUs on a simulated node, others on the real."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

Call = Callable[..., Any]


def client(kubeconfig: Path, token: str = "") -> Call:
    """A function that calls the API and returns decoded JSON."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())

    def call(path: str, body: Any = None, method: str = "", content_type: str = "application/json") -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(cluster["server"] + path, data, method=method or None)
        request.add_header("Authorization", f"Bearer {token or user['token']}")
        request.add_header("Content-Type", content_type)
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.load(answer)

    return call


def bind_forever(kubeconfig: Path, stop: threading.Event) -> None:
    call = client(kubeconfig)
    while not stop.wait(0.05):
        pods = call("/api/v1/pods?fieldSelector=spec.nodeName=,status.phase=Pending")["items"]
        for pod in pods:
            meta = pod["metadata"]
            if "deletionTimestamp" in meta or meta.get("annotations", {}).get("leave") == "unbound":
                continue
            binding = {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": _node(pod)}}
            try:
                call(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding", binding)
            except urllib.error.HTTPError as error:
                error.close()


def _node(pod: Any) -> str:
    limits = pod["spec"]["containers"][0]["resources"].get("limits") or {}
    return "sim-0" if "nvidia.com/gpu" in limits else "real-0"
