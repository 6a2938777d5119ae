"""Startup, readiness and liveness probes of a running process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from muster.local.api.access import Object

Execute = Callable[[list[str], float], Awaitable[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class Probe:
    """How and how often to ask a container how it is."""

    spec: Object
    container: Object
    address: str
    execute: Execute

    async def watch(self, tell: Callable[[bool, str], bool]) -> None:
        """Ask until `tell` has heard enough; it hears each time the answer changes, and of the first one."""
        await asyncio.sleep(float(self.spec.get("initialDelaySeconds", 0)))
        told: bool | None = None
        in_a_row = 0
        last: bool | None = None
        while True:
            good, why = await self.ask()
            in_a_row = in_a_row + 1 if good == last else 1
            last = good
            enough = self.spec.get("successThreshold", 1) if good else self.spec.get("failureThreshold", 3)
            if in_a_row >= enough and good != told:
                told = good
                if tell(good, why):
                    return
            await asyncio.sleep(float(self.spec.get("periodSeconds", 10)))

    async def ask(self) -> tuple[bool, str]:
        """One answer, and why it is no."""
        seconds = float(self.spec.get("timeoutSeconds", 1))
        try:
            async with asyncio.timeout(seconds):
                return await self._ask(seconds)
        except TimeoutError:
            return False, f"no answer within {seconds:g} s"
        except (OSError, aiohttp.ClientError) as error:
            return False, str(error)

    async def _ask(self, seconds: float) -> tuple[bool, str]:
        if "exec" in self.spec:
            code, output = await self.execute(self.spec["exec"].get("command") or [], seconds)
            return code == 0, output
        if "httpGet" in self.spec:
            return await self._http(self.spec["httpGet"])
        where = self.spec.get("tcpSocket") or self.spec.get("grpc") or {}
        _, writer = await asyncio.open_connection(where.get("host") or self.address, self._port(where["port"]))
        writer.close()
        await writer.wait_closed()
        return True, ""

    async def _http(self, get: Object) -> tuple[bool, str]:
        scheme, host = get.get("scheme", "HTTP").lower(), get.get("host") or self.address
        url = f"{scheme}://{host}:{self._port(get['port'])}/{get.get('path', '/').lstrip('/')}"
        headers = {header["name"]: header["value"] for header in get.get("httpHeaders") or ()}
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
            return 200 <= answer.status < 400, f"HTTP probe failed with statuscode: {answer.status}"

    def _port(self, port: int | str) -> int:
        if isinstance(port, int):
            return port
        named = {p.get("name"): p["containerPort"] for p in self.container.get("ports") or ()}
        return int(named.get(port, port))
