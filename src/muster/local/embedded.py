"""The cluster as one object: a store, the API on a socket, and what is needed to talk to it."""

from __future__ import annotations

import ipaddress
import secrets
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from muster.local import kubeconfig
from muster.local.api import bootstrap, tls
from muster.local.api.auth import MASTERS, Authenticator, User
from muster.local.api.cluster import Cluster
from muster.local.api.inprocess import InProcess
from muster.local.api.server import ApiServer, Listening, listen
from muster.local.store import Store

ADMIN = "muster-admin"


class UnsafeAddressError(ValueError):
    """The cluster was told to listen beyond this machine without what makes that safe."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a cluster is set up. Without a directory nothing outlives the process."""

    directory: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""  # of the administrator; kept in the directory, or made up
    secure: bool = True
    native_gang: bool = False
    power_safe: bool = False


@dataclass(slots=True)
class Embedded:
    """A running API server."""

    settings: Settings
    store: Store
    cluster: Cluster
    access: InProcess
    authenticator: Authenticator
    listening: Listening
    ca: bytes | None
    token: str
    users: dict[str, User] = field(default_factory=dict)

    @property
    def url(self) -> str:
        scheme = "https" if self.settings.secure else "http"
        host = self.listening.host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - compared, not bound
        return f"{scheme}://{shown}:{self.listening.port}"

    def kubeconfig(self, token: str = "") -> str:
        return kubeconfig.text(self.url, self.ca, token or self.token)

    async def stop(self) -> None:
        await self.listening.stop()
        await self.store.durable()
        self.store.close()


async def start(settings: Settings) -> Embedded:
    """Open the store and accept connections."""
    _check_safe(settings)
    store = Store(settings.directory, power_safe=settings.power_safe)
    try:
        return await _start(settings, store)
    except BaseException:
        store.close()
        raise


async def _start(settings: Settings, store: Store) -> Embedded:
    cluster = Cluster(store, native_gang=settings.native_gang)
    bootstrap.prepare(cluster)
    token = settings.token or _kept(settings.directory, "admin.token")
    admin = User(ADMIN, (MASTERS,))
    authenticator = Authenticator(store, {token: admin}, _kept(settings.directory, "accounts.key").encode())
    context, ca = _security(settings)
    server = ApiServer(cluster, authenticator)
    listening = await listen(server, settings.host, settings.port, context)
    return Embedded(settings, store, cluster, InProcess(cluster), authenticator, listening, ca, token)


def _check_safe(settings: Settings) -> None:
    if not _is_loopback(settings.host) and not (settings.secure and settings.token):
        raise UnsafeAddressError(
            f"listening on {settings.host} lets other machines in: give a token of your own and keep TLS on"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _kept(directory: Path | None, name: str) -> str:
    """A secret that stays the same as long as its directory does."""
    if directory is None:
        return secrets.token_urlsafe(32)
    path = directory / name
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path.read_text()


def _security(settings: Settings) -> tuple[ssl.SSLContext | None, bytes | None]:
    if not settings.secure:
        return None, None
    with tempfile.TemporaryDirectory(prefix="muster-") as scratch:
        home = settings.directory or Path(scratch)
        ca = tls.authority(home)
        names = dict.fromkeys(["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", settings.host])
        tls.server(ca, list(names)).save(home, "server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(home / "server.crt", home / "server.key")
        context.load_verify_locations(cadata=ca.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
    return context, ca.certificate
