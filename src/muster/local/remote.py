"""Talk to a running local cluster from another process: the little a command needs, with the standard
library alone.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.errors import UserError

Object = dict[str, Any]
_MERGE = "application/merge-patch+json"


class RefusedError(Exception):
    """The API said no; `code` is the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Remote:
    """A cluster, as its kubeconfig describes it."""

    server: str
    token: str
    context: ssl.SSLContext | None

    def get(self, path: str) -> Object:
        return self.send("GET", path)

    def merge(self, path: str, change: Object) -> Object:
        return self.send("PATCH", path, change, _MERGE)

    def send(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        """One request. Raises RefusedError when the API refuses, UserError when there is none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data=data, method=method)  # noqa: S310 our own kubeconfig
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:  # noqa: S310 see above
                found: Object = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise RefusedError(error.code, _message(error)) from None
        except (urllib.error.URLError, TimeoutError) as error:
            why = getattr(error, "reason", error)
            raise UserError(f"no cluster answers at {self.server}: {why}; start one with 'muster up'") from None


def connect(kubeconfig: Path) -> Remote:
    """The cluster of a kubeconfig that `muster up` wrote."""
    if not kubeconfig.exists():
        raise UserError(f"{kubeconfig} is not there; start a cluster with 'muster up' or name its --kubeconfig")
    try:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = cluster.get("certificate-authority-data")
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode()) if authority else None
        return Remote(cluster["server"], user["token"], context)
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(f"{kubeconfig} is not a kubeconfig that 'muster up' wrote: {error!r}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
