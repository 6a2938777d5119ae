"""Credential plugins as real programs: answers, expiry, refusals and all that goes wrong."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.kube import config
from muster.kube.access import Access, Trust
from muster.kube.errors import ConfigError, UnsentError
from muster.kube.execplugin import GROUP, ExecPlugin
from muster.kube.paths import PODS
from muster.kube.requests import Client
from muster.kube.transport import Transport
from tests.kube.pki import Authority
from tests.kube.stub import QUICK, Stub, serving

POD = PODS.path("default", "a")
COUNTING = """
import json, os, pathlib
file = pathlib.Path(os.environ["COUNTER"])
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
"""
ANSWER = """
head = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
print(json.dumps(head | {"status": STATUS}))
"""


def plugin(tmp_path: Path, status: str, **options: Any) -> ExecPlugin:
    """A program that answers with a status, a Python expression that may use `count`."""
    script = tmp_path / "plugin.py"
    script.write_text(COUNTING + ANSWER.replace("STATUS", status))
    return ExecPlugin(sys.executable, (str(script),), {"COUNTER": str(tmp_path / "count")}, GROUP + "v1", **options)


def runs(tmp_path: Path) -> int:
    return int((tmp_path / "count").read_text())


def test_many_who_wait_share_one_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = plugin(tmp_path, '{"token": f"t{count}"}')
        grants = await asyncio.gather(*(source.current() for _ in range(5)))
        assert {each.authorization for each in grants} == {"Bearer t1"}
        assert source.reject(grants[0])
        assert (await source.current()).authorization == "Bearer t2"
        assert source.reject(grants[0])  # an old one, refused late
        assert (await source.current()).authorization == "Bearer t2"

    asyncio.run(scenario())


@pytest.mark.parametrize(("end", "expected"), [("2001-01-01T00:00:00Z", 2), ("2999-01-01T00:00:00Z", 1)])
def test_an_answer_is_used_until_it_expires(tmp_path: Path, end: str, expected: int) -> None:
    async def scenario() -> None:
        source = plugin(tmp_path, f'{{"token": "t", "expirationTimestamp": "{end}"}}')
        await source.current()
        await source.current()
        assert runs(tmp_path) == expected

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("{}", "neither a token nor a certificate"),
        ("None", "neither a token nor a certificate"),
        ("3", "printed no ExecCredential"),
        ('{"token": "t", "expirationTimestamp": "soon"}', "wrong expirationTimestamp"),
        ("exit('not logged\\n in')", "failed with 1: not logged in"),
        ('__import__("time").sleep(60)', "did not answer within 0.3 s"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, status: str, words: str) -> None:
    slow = 0.3 if "sleep" in status else 30.0
    with pytest.raises(ConfigError, match=words):
        asyncio.run(plugin(tmp_path, status, patience=slow).current())


def test_a_program_that_is_not_there_comes_with_its_hint() -> None:
    source = ExecPlugin("/nowhere/login", (), {}, GROUP + "v1", "install it from your cloud")
    with pytest.raises(ConfigError, match=r"'/nowhere/login' cannot be run: .*install it from your cloud"):
        asyncio.run(source.current())


def test_another_version_than_asked_for_is_refused(tmp_path: Path) -> None:
    source = plugin(tmp_path, '{"token": "t"}')
    source.api_version = GROUP + "v1beta1"
    with pytest.raises(ConfigError, match=r"was asked for 'client\.authentication\.k8s\.io/v1beta1'"):
        asyncio.run(source.current())


def test_a_plugin_of_a_kubeconfig_is_told_about_the_cluster(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "login"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "words = [*sys.argv[1:], os.environ['REGION'], asked['spec']['cluster']['server'],"
        " asked['spec']['cluster']['config']['audience']]\n"
        "asked['status'] = {'token': '.'.join(words).replace('/', '')}\n"
        "print(json.dumps(asked))\n"
    )
    script.chmod(0o755)
    run = {
        "apiVersion": GROUP + "v1beta1",
        "command": "bin/login",
        "args": ["a", "b"],
        "env": [{"name": "REGION", "value": "here"}],
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "http://x", "extensions": [extension]}}],
        "users": [{"name": "u", "user": {"exec": run}}],
        "contexts": [{"name": "n", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "n",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    access = config.load(tmp_path / "config")
    assert asyncio.run(access.credentials.current()).authorization == "Bearer a.b.here.http:x.me"


def test_a_refused_token_is_replaced_within_the_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        stub = Stub()
        stub.put(POD)
        stub.authorize = lambda request: request.headers["Authorization"] == "Bearer t2"
        async with serving(stub) as url:
            client = Client(Transport(Access(url, plugin(tmp_path, '{"token": f"t{count}"}'))))
            await client.get(POD)
            assert runs(tmp_path) == 2
            await client.transport.close()

    asyncio.run(scenario())


def test_a_failing_plugin_is_waited_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        stub = Stub()
        stub.put(POD)
        async with serving(stub) as url:
            source = plugin(tmp_path, '{"token": "t"} if count > 2 else {}')
            client = Client(Transport(Access(url, source)), backoff=QUICK, attempts=2)
            with pytest.raises(UnsentError, match="neither a token"):
                await client.get(POD)
            await client.get(POD)
            await client.transport.close()

    asyncio.run(scenario())


def test_a_new_certificate_makes_new_connections(tmp_path: Path) -> None:
    authority = Authority()
    pairs = [authority.sign("first"), authority.sign("second")]
    (tmp_path / "pairs").write_text(json.dumps([[pair.certificate.decode(), pair.key.decode()] for pair in pairs]))
    status = (
        f'dict(zip(("clientCertificateData", "clientKeyData"), json.load(open("{tmp_path}/pairs"))[min(count, 2) - 1]))'
    )

    async def scenario() -> None:
        stub = Stub()
        stub.put(POD)
        wanted = ["first"]
        seen: list[str] = []

        def named(request: Any) -> bool:
            seen.append(request.transport.get_extra_info("peercert")["subject"][0][0][1])
            return seen[-1] == wanted[0]

        stub.authorize = named
        async with serving(stub, authority.server(tmp_path, ask=True)) as url:
            access = Access(url, plugin(tmp_path, status), Trust(authority.certificate))
            client = Client(Transport(access), attempts=1)
            await client.get(POD)
            wanted[0] = "second"
            await client.get(POD)
            await client.get(POD)
            assert seen == ["first", "first", "second", "second"]
            await client.transport.close()

    asyncio.run(scenario())
