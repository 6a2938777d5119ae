"""Server-side apply."""

from __future__ import annotations

from typing import Any

from muster.local.api.cluster import Cluster
from muster.local.api.errors import not_found
from muster.local.api.options import Options
from muster.local.api.requests import Target

Object = dict[str, Any]


def without_managed_fields(obj: Object) -> Object:
    obj["metadata"].pop("managedFields", None)
    return obj


def apply(cluster: Cluster, target: Target, body: Any, options: Options, named: bool) -> tuple[Object, bool]:
    raise not_found("", "", "")
