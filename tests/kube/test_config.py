"""Kubeconfig files and service accounts, and real servers reached with them."""

import asyncio
import base64
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from muster.kube import config, incluster
from muster.kube.access import Access, Fixed, TokenFile
from muster.kube.errors import ApiError, ConfigError, UnsentError
from muster.kube.paths import PODS
from muster.kube.requests import Client
from muster.kube.transport import Transport
from tests.kube.pki import Authority
from tests.kube.stub import QUICK, Stub, serving

POD = PODS.path("default", "a")
AUTHORITY = Authority()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration but the test's."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def tree(cluster: dict[str, Any], user: dict[str, Any], name: str = "one", **context: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
        "current-context": name,
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def grant_of(access: Access) -> Any:
    return asyncio.run(access.credentials.current())


HTTP = {"server": "http://127.0.0.1:1/"}


def test_a_token_and_a_namespace(tmp_path: Path) -> None:
    access = config.load(write(tmp_path / "c", tree(HTTP, {"token": "abc\n"}, namespace="team")))
    assert (access.server, access.namespace) == ("http://127.0.0.1:1", "team")
    assert grant_of(access).authorization == "Bearer abc"


def test_a_name_and_a_password_and_impersonation(tmp_path: Path) -> None:
    user = {"username": "u", "password": "p", "as": "boss"}
    access = config.load(write(tmp_path / "c", tree(HTTP, user)))
    assert grant_of(access).authorization == "Basic " + encoded(b"u:p")
    assert access.headers == {"Impersonate-User": "boss"}


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="give --kubeconfig"):
        config.load()
    write(tmp_path / "home" / ".kube" / "config", tree({"server": "http://home"}, {}))
    assert config.load().server == "http://home"
    write(tmp_path / "env", tree({"server": "http://env"}, {}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}{os.pathsep}{tmp_path / 'env'}")
    assert config.load().server == "http://env"
    write(tmp_path / "arg", tree({"server": "http://arg"}, {}))
    assert config.load(tmp_path / "arg").server == "http://arg"


def test_of_several_files_the_first_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tree({"server": "http://first"}, {"token": "1"}, "a")
    second = tree({"server": "http://second"}, {"token": "2"}, "b")
    second["clusters"].append({"name": "a", "cluster": {"server": "http://not-this"}})
    del first["current-context"]
    write(tmp_path / "one" / "c", first)
    write(tmp_path / "two" / "c", second)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one/c{os.pathsep}{tmp_path}/two/c")
    assert config.load().server == "http://second"
    assert config.load(context="a").server == "http://first"
    with pytest.raises(ConfigError, match="no context named 'c'; known: a, b"):
        config.load(context="c")


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    pair = AUTHORITY.sign("me")
    for name, data in (("ca", AUTHORITY.certificate), ("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(data)
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": "ca"}
    access = config.load(write(tmp_path / "c", tree(cluster, {"client-certificate": "crt", "client-key": "key"})))
    assert access.trust.authority == AUTHORITY.certificate
    assert grant_of(access).key == pair.key
    assert isinstance(access.credentials, Fixed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t["clusters"][0]["cluster"].update(server="here"), "server 'here' must be a URL"),
        (lambda t: t["clusters"][0]["cluster"].update(server=3), "server must be a string, not int"),
        (lambda t: t.update({"current-context": ""}), r"no current-context; name one of .*\(one\)"),
        (lambda t: t["contexts"][0]["context"].update(user="x"), "no user named 'x'; known: one"),
        (lambda t: t["users"][0]["user"].update(token="a b"), "white space"),
        (lambda t: t["users"][0]["user"].update({"client-key-data": "!"}), "client-key-data is not base64"),
        (lambda t: t["users"][0]["user"].update({"client-key": "nope"}), "client-key .*nope: No such file"),
        (lambda t: t["users"][0]["user"].update({"client-key-data": "YQ=="}), "must be given together"),
        (lambda t: t["users"][0]["user"].update({"auth-provider": {}}), "auth-provider .* use exec"),
        (lambda t: t["users"][0]["user"].update({"as-groups": ["x"]}), "only `as` is supported"),
        (lambda t: t["users"][0]["user"].update({"exec": {}}), "command is missing"),
        (lambda t: t["users"][0]["user"].update({"exec": {"command": "x"}}), "apiVersion '' must be"),
        (lambda t: t["users"].append({}), r"users\[1\]: name is missing"),
        (lambda t: t.update(users=3), "users must be a list of mappings"),
        (lambda t: t["clusters"][0]["cluster"].update({"proxy-url": "socks5://x"}), "must begin with http"),
        (lambda t: t["clusters"][0]["cluster"].update({"insecure-skip-tls-verify": "yes"}), "true or false"),
        (
            lambda t: t["clusters"][0]["cluster"].update(
                {"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}
            ),
            "contradicts certificate-authority",
        ),
        (
            lambda t: t["clusters"][0]["cluster"].update({"server": "https://x", "certificate-authority-data": "YQ=="}),
            "cluster 'one'.* no certificates in it",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: Callable[[Any], Any], words: str) -> None:
    content = tree(dict(HTTP), {})
    change(content)
    with pytest.raises(ConfigError, match=words) as raised:
        config.load(write(tmp_path / "c", content))
    assert str(tmp_path / "c") in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "words"), [("{", "not YAML"), ("- a", "must be a mapping"), ("", "no context")])
def test_a_file_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(ConfigError, match=words):
        config.load(tmp_path / "c")
    with pytest.raises(ConfigError, match="no such file"):
        config.load(tmp_path / "d")


def test_a_service_account_follows_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not incluster.available(tmp_path)
    with pytest.raises(ConfigError, match="not in a pod"):
        incluster.load(tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        incluster.load(tmp_path)
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    (tmp_path / "namespace").write_text("kube-system")
    (tmp_path / "token").write_text("one\n")
    assert incluster.available(tmp_path)
    access = incluster.load(tmp_path)
    assert (access.server, access.namespace) == ("https://[fd00::1]:6443", "kube-system")
    assert grant_of(access).authorization == "Bearer one"


def test_a_token_file_is_read_again_with_time_and_on_refusal(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = tmp_path / "token"
        file.write_text("one")
        source = TokenFile(file)
        grant = await source.current()
        file.write_text("two")
        assert await source.current() is grant
        assert source.reject(grant)
        fresh = await source.current()
        assert fresh.authorization == "Bearer two"
        assert not source.reject(fresh)
        source._grant, source._read_at = fresh, -1e9
        file.write_text("three")
        assert (await source.current()).authorization == "Bearer three"
        file.unlink()
        source._read_at = -1e9
        assert (await source.current()).authorization == "Bearer three"
        with pytest.raises(ConfigError, match="must hold a token"):
            await TokenFile(file).current()

    asyncio.run(scenario())


async def reach(access: Access) -> None:
    """Read a pod with it."""
    client = Client(Transport(access), timeout=5, attempts=2, backoff=QUICK)
    try:
        await client.get(POD)
    finally:
        await client.transport.close()


def served(scenario: Callable[[Stub], Any], tls: ssl.SSLContext | None = None) -> None:
    async def main() -> None:
        stub = Stub()
        stub.put(POD)
        async with asyncio.timeout(60), serving(stub, tls):
            await scenario(stub)

    asyncio.run(main())


def test_a_rotated_token_is_taken_up_within_the_call(tmp_path: Path) -> None:
    async def scenario(stub: Stub) -> None:
        file = tmp_path / "token"
        file.write_text("one")
        good = ["one"]
        stub.authorize = lambda request: request.headers["Authorization"] == f"Bearer {good[0]}"
        client = Client(Transport(Access(stub.url, TokenFile(file))), attempts=1)
        await client.get(POD)
        file.write_text("two")
        good[0] = "two"
        await client.get(POD)
        good[0] = "three"
        with pytest.raises(ApiError, match="401"):
            await client.get(POD)
        assert len(stub.asked) == 4
        await client.transport.close()

    served(scenario)


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    pair = AUTHORITY.sign("muster")

    async def scenario(stub: Stub) -> None:
        def named(request: web.BaseRequest) -> bool:
            assert request.transport is not None
            peer = request.transport.get_extra_info("peercert")
            return bool(peer["subject"][0][0][1] == "muster")

        stub.authorize = named
        cluster = {"server": stub.url, "certificate-authority-data": encoded(AUTHORITY.certificate)}
        user = {
            "client-certificate-data": encoded(pair.certificate),
            "client-key-data": encoded(pair.key),
        }
        await reach(config.load(write(tmp_path / "c", tree(cluster, user))))

    served(scenario, AUTHORITY.server(tmp_path, ask=True))


def test_a_server_nobody_vouches_for_is_not_talked_to(tmp_path: Path) -> None:
    async def scenario(stub: Stub) -> None:
        other = encoded(Authority().certificate)
        with pytest.raises(UnsentError, match="certificate verify failed"):
            await reach(
                config.load(write(tmp_path / "c", tree({"server": stub.url, "certificate-authority-data": other}, {})))
            )
        assert not stub.asked
        skip = {"server": stub.url, "insecure-skip-tls-verify": True}
        await reach(config.load(write(tmp_path / "c", tree(skip, {}))))

    served(scenario, AUTHORITY.server(tmp_path))


def test_a_server_may_go_by_another_name(tmp_path: Path) -> None:
    async def scenario(stub: Stub) -> None:
        cluster = {"server": stub.url, "certificate-authority-data": encoded(AUTHORITY.certificate)}
        with pytest.raises(UnsentError, match="certificate"):
            await reach(config.load(write(tmp_path / "c", tree(cluster, {}))))
        await reach(config.load(write(tmp_path / "c", tree(cluster | {"tls-server-name": "api.test"}, {}))))

    served(scenario, AUTHORITY.server(tmp_path, "api.test"))


def test_a_proxy_is_used(tmp_path: Path) -> None:
    async def scenario(stub: Stub) -> None:
        cluster = {"server": "http://nowhere.invalid", "proxy-url": stub.url}
        await reach(config.load(write(tmp_path / "c", tree(cluster, {}))))
        assert stub.asked[0].headers["Host"] == "nowhere.invalid"

    served(scenario)


def test_reading_a_kubeconfig_imports_no_client(tmp_path: Path) -> None:
    code = "import sys, muster.kube.config; print([each for each in ('aiohttp',) if each in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
