"""From a pod template to a pod: what every owner does alike."""

from __future__ import annotations

import hashlib
import json

from muster.local.api.access import Object
from muster.local.controllers import fields as f

_SAFE = "bcdfghjklmnpqrstvwxz2456789"


def pod_of(owner: Object, prefix: str) -> Object:
    """A pod as the template of `owner` asks for it, named by the API server after `prefix`."""
    template = f.spec(owner)["template"]
    given = template.get("metadata") or {}
    metadata: Object = {"generateName": prefix, "namespace": f.namespace(owner)}
    for key in ("labels", "annotations"):
        if given.get(key):
            metadata[key] = dict(given[key])
    if given.get("finalizers"):
        metadata["finalizers"] = list(given["finalizers"])
    metadata["ownerReferences"] = [f.owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template.get("spec") or {})}


def template_hash(template: Object, collisions: int = 0) -> str:
    """A short name for a template, of the letters Kubernetes uses so that no word appears by accident."""
    text = json.dumps([template, collisions], sort_keys=True).encode()
    number = int.from_bytes(hashlib.sha256(text).digest()[:6], "big")
    letters = ""
    for _ in range(10):
        number, digit = divmod(number, len(_SAFE))
        letters += _SAFE[digit]
    return letters
