"""The server as a whole: TLS, certificates, where it listens, and what survives a kill -9."""

from __future__ import annotations

import asyncio
import random
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

from muster.local import embedded, kubeconfig
from muster.local.api import tls
from muster.local.embedded import Settings, UnsafeAddressError


@pytest.mark.parametrize(
    "settings",
    [
        Settings(host="0.0.0.0"),
        Settings(host="0.0.0.0", token="t", secure=False),
        Settings(host="192.0.2.1", secure=False),
        Settings(host="example.com"),
    ],
)
def test_it_lets_nobody_in_from_elsewhere_without_tls_and_a_token(settings: Settings) -> None:
    with pytest.raises(UnsafeAddressError, match="lets other machines in"):
        asyncio.run(embedded.start(settings))


def test_a_client_certificate_is_a_user(tmp_path: Path) -> None:
    async def scene() -> None:
        server = await embedded.start(Settings(tmp_path))
        ca = tls.authority(tmp_path)
        found = {}
        for user, groups in (("root", ("system:masters",)), ("eve", ())):
            tls.client(ca, user, groups).save(tmp_path, user)
            context = ssl.create_default_context(cadata=ca.certificate.decode())
            context.load_cert_chain(tmp_path / f"{user}.crt", tmp_path / f"{user}.key")
            async with (
                aiohttp.ClientSession(server.url) as session,
                session.get("/api/v1/nodes", ssl=context) as answer,
            ):
                found[user] = (answer.status, (await answer.json()).get("message"))
        await server.stop()
        assert found["root"] == (200, None)
        words = 'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope'
        assert found["eve"] == (403, words)

    asyncio.run(scene())


def test_a_kept_cluster_keeps_its_token_and_its_authority(tmp_path: Path) -> None:
    async def once() -> tuple[str, bytes | None]:
        server = await embedded.start(Settings(tmp_path))
        await server.stop()
        return server.token, server.ca

    assert asyncio.run(once()) == asyncio.run(once())
    assert (tmp_path / "admin.token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


def test_the_kubeconfig_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config"
    kubeconfig.write(path, kubeconfig.text("https://127.0.0.1:1", b"ca", "token"))
    assert path.stat().st_mode & 0o077 == 0
    loaded = yaml.safe_load(path.read_text())
    assert loaded["current-context"] == loaded["contexts"][0]["name"]


SERVER = """
import asyncio, sys
from pathlib import Path
from muster.local import embedded
async def main():
    server = await embedded.start(embedded.Settings(Path(sys.argv[1]), token="t", secure=False))
    print(server.url, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_kill_9_of_the_server_loses_nothing_a_client_was_told_of(tmp_path: Path) -> None:
    chance = random.Random(9)
    told: dict[str, str] = {}

    async def write_until_cut(url: str, rounds: int) -> None:
        async with aiohttp.ClientSession(url, headers={"Authorization": "Bearer t"}) as session:
            for i in range(10_000):
                name = f"c{i % 9}"
                body = {"metadata": {"name": name}, "data": {"round": str(rounds), "i": str(i)}}
                maps = "/api/v1/namespaces/default/configmaps"
                async with session.put(f"{maps}/{name}", json=body) as answer:
                    if answer.status == 200:
                        told[name] = (await answer.json())["metadata"]["resourceVersion"]
                        continue
                async with session.post(maps, json=body) as answer:
                    told[name] = (await answer.json())["metadata"]["resourceVersion"]

    async def session_of(rounds: int) -> None:
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        headers = {"Authorization": "Bearer t"}
        async with (
            aiohttp.ClientSession(url, headers=headers) as session,
            session.get("/api/v1/namespaces/default/configmaps") as answer,
        ):
            stored = {i["metadata"]["name"]: i["metadata"] for i in (await answer.json())["items"]}
        for name, version in told.items():
            assert int(stored[name]["resourceVersion"]) >= int(version)
        loop = asyncio.get_running_loop()
        loop.call_later(chance.uniform(0.02, 0.2), server.send_signal, signal.SIGKILL)
        with pytest.raises(aiohttp.ClientError):
            await write_until_cut(url, rounds)
        server.wait()
        server.stdout.close()

    for rounds in range(8):
        asyncio.run(session_of(rounds))
    assert len(told) == 9
