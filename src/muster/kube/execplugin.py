"""Credentials from a program, as cloud providers hand them out: run it, use the answer until it expires.

The protocol is client.authentication.k8s.io ExecCredential, v1 and v1beta1. The program gets no terminal.
"""

import asyncio
import base64
import os
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from muster.kube.access import Grant, bearer
from muster.kube.errors import ConfigError
from muster.objects.owners import seconds

GROUP = "client.authentication.k8s.io/"
PATIENCE = 60.0
SLACK = 60.0


class _Given(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    status: _Given | None = None


@dataclass(slots=True)
class ExecPlugin:
    """A program that prints who we are."""

    command: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    api_version: str
    hint: str = ""
    cluster: dict[str, Any] | None = None
    patience: float = PATIENCE
    _grant: Grant | None = None
    _until: float = float("inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self) -> Grant:
        """The last answer while it is good; else a new one, asked for once however many wait for it."""
        async with self._lock:
            if self._grant is None or time.time() >= self._until:
                await self._renew()
            assert self._grant is not None
            return self._grant

    def reject(self, grant: Grant) -> bool:
        """Forget it, unless a newer one took its place already."""
        if grant is self._grant:
            self._grant = None
        return True

    async def _renew(self) -> None:
        try:
            answer = msgspec.json.decode(await self._run(), type=_Answer)
        except msgspec.MsgspecError as error:
            raise self._wrong(f"printed no ExecCredential: {error}") from error
        if answer.api_version != self.api_version:
            raise self._wrong(f"answered in '{answer.api_version}', was asked for '{self.api_version}'")
        given = answer.status
        if given is None or not (given.token or given.client_certificate_data):
            raise self._wrong("gave neither a token nor a certificate")
        self._until = self._good_until(given.expiration_timestamp)
        self._grant = Grant(
            bearer(given.token or "", f"credential plugin '{self.command}'"),
            (given.client_certificate_data or "").encode(),
            (given.client_key_data or "").encode(),
        )

    def _good_until(self, expiration: str | None) -> float:
        """A little before it expires: a tenth of the time left, but at most a minute."""
        if not expiration:
            return float("inf")
        try:
            end = seconds(expiration)
        except ValueError as error:
            raise self._wrong(f"gave a wrong expirationTimestamp: {error}") from error
        return end - min(SLACK, max(0.0, end - time.time()) / 10)

    async def _run(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": self._asked()},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            words = f"cannot be run: {error.strerror}"
            raise self._wrong(f"{words}; {self.hint}" if self.hint else words) from error
        return await self._finished(process)

    async def _finished(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            out, err = await asyncio.wait_for(process.communicate(), self.patience)
        except TimeoutError as error:
            raise self._wrong(f"did not answer within {self.patience:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._wrong(f"failed with {process.returncode}: {err.decode(errors='replace')[-500:].strip()}")
        return out

    def _asked(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        asked = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(asked).decode()

    def _wrong(self, words: str) -> ConfigError:
        return ConfigError(f"credential plugin '{self.command}' {words}")


def cluster_info(server: str, authority: bytes, insecure: bool, server_name: str, config: object) -> dict[str, Any]:
    """What a plugin that asks for it is told about the cluster."""
    info: dict[str, Any] = {"server": server}
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    if insecure:
        info["insecure-skip-tls-verify"] = True
    if server_name:
        info["tls-server-name"] = server_name
    if config is not None:
        info["config"] = config
    return info
