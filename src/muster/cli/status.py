"""`muster status`: whether a cluster runs, where, and what is in it."""

from __future__ import annotations

import argparse
import base64
import json
import ssl
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from muster.cli.up import DEFAULT_KUBECONFIG
from muster.local import presence

NAME = "status"
HELP = "Say whether a cluster runs, where, and what is in it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", type=Path, default=DEFAULT_KUBECONFIG, metavar="FILE", help="the one given to 'muster up'"
    )


def run(args: argparse.Namespace) -> int:
    running = presence.find(args.kubeconfig)
    if running is None:
        print(f"no cluster runs behind {args.kubeconfig}; start one with 'muster up'")
        return 1
    print(f"running at {running.url}, process {running.pid}")
    print(f"state: {running.data or 'in memory only'}")
    nodes, pods = _items(args.kubeconfig, "nodes"), _items(args.kubeconfig, "pods")
    ready = sum(_is_ready(node) for node in nodes)
    print(f"nodes: {len(nodes)}, {ready} ready")
    phases = Counter(pod["status"].get("phase", "Unknown") for pod in pods)
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    print(f"pods: {told or 'none'}")
    return 0


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _items(kubeconfig: Path, plural: str) -> list[dict[str, Any]]:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(f"{cluster['server']}/api/v1/{plural}")  # noqa: S310 - from our own file
    request.add_header("Authorization", f"Bearer {user['token']}")
    with urllib.request.urlopen(request, context=ssl.create_default_context(cadata=ca)) as answer:  # noqa: S310
        items: list[dict[str, Any]] = json.load(answer)["items"]
        return items
