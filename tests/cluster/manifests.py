"""The objects these tests create."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def pod(name: str, command: str = "sleep 3600", **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    body = {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": body}


def job(name: str, command: str = "true", **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def deployment(name: str, replicas: int = 2) -> Object:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 3600"]}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def quota(name: str, **hard: str) -> Object:
    named = {k.replace("_", "."): v for k, v in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": named}}
