"""What it takes to reach an API server: its address, whom to trust, and who we are.

`kubeconfig` and `incluster` make one of these; `transport` uses it.
"""

import os
import ssl
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from muster.kube.errors import ConfigError

TOKEN_FILE_AGE = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """Who we are, for now: a token, a client certificate with its key, a name and password, or nothing."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


def bearer(token: str, where: str) -> str:
    """The Authorization header of a token; refuses what could not travel in a header."""
    token = token.strip()
    if not token:
        return ""
    if not token.isascii() or any(char.isspace() for char in token):
        raise ConfigError(f"{where}: token holds white space or characters no token has; fetch it again")
    return f"Bearer {token}"


class Credentials(Protocol):
    """A source of grants that keeps them fresh."""

    async def current(self) -> Grant:
        """The grant to use now, renewed if it is old."""

    def reject(self, grant: Grant) -> bool:
        """The server refused this one: whether another may be had by asking again."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Credentials that do not change."""

    grant: Grant

    async def current(self) -> Grant:
        """Always the same."""
        return self.grant

    def reject(self, grant: Grant) -> bool:
        """There is no other."""
        return grant is not self.grant


@dataclass(slots=True)
class TokenFile:
    """A token that someone else keeps fresh in a file, as service accounts have it."""

    path: Path
    fixed: Grant = Grant()
    _grant: Grant | None = None
    _read_at: float = 0.0

    async def current(self) -> Grant:
        """The token as of at most a minute ago."""
        now = time.monotonic()
        if self._grant is None or now - self._read_at > TOKEN_FILE_AGE:
            self._grant = Grant(self._read(), self.fixed.certificate, self.fixed.key)
            self._read_at = now
        return self._grant

    def reject(self, grant: Grant) -> bool:
        """Read the file again at the next call; worth it only if it holds another token by now."""
        if grant is self._grant:
            self._grant = None
        try:
            return self._read() != grant.authorization
        except ConfigError:
            return False

    def _read(self) -> str:
        try:
            return bearer(self.path.read_text(), str(self.path))
        except (OSError, UnicodeDecodeError) as error:
            if self._grant is not None:
                return self._grant.authorization  # being replaced just now: the old one is good for a while
            raise ConfigError(f"token file {self.path}: {error}; it must hold a token") from error


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom we believe to be the server."""

    authority: bytes = b""
    insecure: bool = False
    server_name: str = ""

    def context(self, grant: Grant) -> ssl.SSLContext:
        """The TLS settings for connections made as this grant."""
        try:
            context = ssl.create_default_context(cadata=self.authority.decode() or None)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"certificate-authority: no certificates in it ({error}); must be PEM") from error
        context.set_alpn_protocols(["http/1.1"])
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if grant.certificate:
            _load_pair(context, grant)
        return context


def _load_pair(context: ssl.SSLContext, grant: Grant) -> None:
    """Python's TLS takes certificates from files only: it exists for a moment, readable by us alone."""
    handle, name = tempfile.mkstemp(prefix="muster-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(grant.certificate + b"\n" + grant.key)
        context.load_cert_chain(name)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"client certificate and key: {error}; they must be PEM and a pair") from error
    finally:
        Path(name).unlink()


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and the way in."""

    server: str
    credentials: Credentials = Fixed(Grant())
    trust: Trust = Trust()
    namespace: str = "default"
    headers: dict[str, str] = field(default_factory=dict)
    proxy: str = ""
