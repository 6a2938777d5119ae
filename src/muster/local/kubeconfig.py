"""The file that points kubectl and every other client at the cluster."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml


def text(server: str, ca: bytes | None, token: str, name: str = "muster") -> str:
    """A kubeconfig with one cluster, one user and one context."""
    cluster: dict[str, str] = {"server": server}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
        "preferences": {},
    }
    return yaml.safe_dump(config, sort_keys=False)


def write(path: Path, content: str) -> None:
    """Replace the file in one step, readable by its owner alone: the token in it can start processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(content)
    draft.replace(path)
