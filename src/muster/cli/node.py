"""`muster node`: make a node of the local cluster fail, bring it back, or empty it in an orderly way."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from muster.cli.up import DEFAULT_KUBECONFIG
from muster.errors import UserError
from muster.local.nodes.template import FAILED, KIND, DurationError, duration
from muster.local.remote import Object, RefusedError, Remote, connect

NAME = "node"
HELP = "Make a node of the local cluster fail, bring it back, or empty it."

_RETRY = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="VERB")
    fail = _verb(verbs, "fail", "cut its power: it falls silent, and all that ran on it is gone")
    fail.add_argument(
        "--noticed-after",
        default="40s",
        metavar="TIME",
        help="how long until the cluster misses it (default 40s, as in Kubernetes)",
    )
    _verb(verbs, "recover", "bring it back after a failure or a drain")
    _verb(verbs, "drain", "cordon it, then evict its pods within their disruption budgets")


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("node", metavar="NAME", help="the node, as 'kubectl get nodes' shows it")
    parser.add_argument(
        "--kubeconfig", type=Path, default=DEFAULT_KUBECONFIG, metavar="FILE", help="the one given to 'muster up'"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    remote = connect(args.kubeconfig)
    node = _node(remote, args.node)
    try:
        if args.what == "fail":
            _fail(remote, node, args.noticed_after)
        elif args.what == "recover":
            _recover(remote, node)
        else:
            _drain(remote, args.node)
    except RefusedError as error:
        raise UserError(f"node {args.node}: {error}") from None
    return 0


def _node(remote: Remote, name: str) -> Object:
    try:
        return remote.get(_path(name))
    except RefusedError as error:
        if error.code != 404:
            raise UserError(f"node {name}: {error}") from None
    names = [found["metadata"]["name"] for found in remote.get("/api/v1/nodes")["items"]]
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    raise UserError(f"there is no node {name}; there are: {shown or 'none'}")


def _path(name: str) -> str:
    return f"/api/v1/nodes/{name}"


def _fail(remote: Remote, node: Object, noticed_after: str) -> None:
    name = node["metadata"]["name"]
    try:
        duration(noticed_after)
    except DurationError as error:
        raise UserError(f"--noticed-after: {error}") from None
    if KIND not in (node["metadata"].get("labels") or {}):
        raise UserError(f"node {name} is not run by the local cluster (it has no label {KIND}), so it cannot be failed")
    if FAILED in (node["metadata"].get("annotations") or {}):
        raise UserError(f"node {name} has failed already; bring it back with 'muster node recover {name}'")
    remote.merge(_path(name), {"metadata": {"annotations": {FAILED: noticed_after}}})
    print(f"{name} has failed; the cluster will miss it after {noticed_after}")


def _recover(remote: Remote, node: Object) -> None:
    name = node["metadata"]["name"]
    remote.merge(_path(name), {"metadata": {"annotations": {FAILED: None}}, "spec": {"unschedulable": None}})
    print(f"{name} is back")


def _drain(remote: Remote, name: str) -> None:
    remote.merge(_path(name), {"spec": {"unschedulable": True}})
    print(f"{name} is cordoned")
    told: set[str] = set()
    while pods := _pods_on(remote, name):
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                _evict(remote, pod, told)
        time.sleep(_RETRY)
    print(f"{name} is empty")


def _pods_on(remote: Remote, name: str) -> list[Object]:
    found = remote.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]
    return [pod for pod in found if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]


def _evict(remote: Remote, pod: Object, told: set[str]) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
        "deleteOptions": {"preconditions": {"uid": pod["metadata"]["uid"]}},
    }
    try:
        remote.send("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)
        print(f"evicted {namespace}/{name}")
    except RefusedError as error:
        if error.code not in (404, 409, 429):
            raise
        if error.code == 429 and name not in told:
            told.add(name)
            print(f"{namespace}/{name} has to stay for now: {error}")
