"""Who is asking: bearer tokens, service account tokens and client certificates."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

from muster.local.api.errors import ApiError
from muster.local.store import Store

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
_ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class User:
    """Who a request comes from."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def all_groups(self) -> tuple[str, ...]:
        return self.groups if AUTHENTICATED in self.groups else (*self.groups, AUTHENTICATED)


@dataclass(slots=True)
class Authenticator:
    """Tokens known to the cluster, and those it signs for service accounts."""

    store: Store
    tokens: dict[str, User] = field(default_factory=dict)
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def identify(self, authorization: str, certificate: dict[str, Any] | None) -> User:
        """The user of a request. Raises ApiError 401."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            user = self.user_of(token.strip())
            if user is not None:
                return user
        elif certificate:
            return _certified(certificate)
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def user_of(self, token: str) -> User | None:
        """The user a token stands for; None when it stands for nobody (any more)."""
        known = self.tokens.get(token)
        return known if known is not None else self._account(token)

    def issue(self, namespace: str, account: str, uid: str, seconds: int) -> str:
        """A token with which a pod is its service account."""
        claims = {
            "iss": _ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "exp": int(time.time()) + seconds,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }
        head = _packed({"alg": "HS256", "typ": "JWT"}) + "." + _packed(claims)
        return f"{head}.{self._signature(head)}"

    def _signature(self, head: str) -> str:
        return _text(hmac.new(self.secret, head.encode(), hashlib.sha256).digest())

    def _account(self, token: str) -> User | None:
        head, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(head).encode()):
            return None
        try:
            body = head.partition(".")[2]
            claims = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            namespace = claims["kubernetes.io"]["namespace"]
            account = claims["kubernetes.io"]["serviceaccount"]
        except (binascii.Error, ValueError, KeyError, TypeError):
            return None
        record = self.store.get("serviceaccounts", namespace, account["name"])
        if claims["exp"] < time.time() or record is None or record.obj["metadata"]["uid"] != account["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return User(claims["sub"], groups, account["uid"])


def _certified(certificate: dict[str, Any]) -> User:
    parts = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    name = next((value for key, value in parts if key == "commonName"), "")
    return User(name, tuple(value for key, value in parts if key == "organizationName"))


def _packed(value: object) -> str:
    return _text(orjson.dumps(value))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
