"""Nothing a client can send makes the server fail: whatever its own OpenAPI allows, and much that it does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.local.api import builtin, openapi, types
from tests.local.api.serving import TOKEN, Api, serving

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")

GROUPS = [("", "v1"), ("apps", "v1"), ("batch", "v1"), ("policy", "v1"), ("scheduling.k8s.io", "v1")]
GROUPS += [("coordination.k8s.io", "v1"), ("rbac.authorization.k8s.io", "v1"), ("apiextensions.k8s.io", "v1")]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """A server on a thread of its own, for clients that block."""
    loop = asyncio.new_event_loop()
    ready, box = threading.Event(), list[Any]()

    async def live() -> None:
        async with serving(native_gang=True) as server:
            box.append(server)
            stop = asyncio.Event()
            box.append(stop)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()))
    thread.start()
    ready.wait(30)
    yield box[0]
    loop.call_soon_threadsafe(box[1].set)
    thread.join()
    loop.close()


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_requests_made_from_its_own_openapi_never_fail_it(api: Api, group: str, version: str) -> None:
    document = openapi.document(builtin.catalogue(), group, version, {})
    schema = schemathesis.openapi.from_dict(document)
    session = requests.Session()
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]

        @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            case.query = {k: v for k, v in (case.query or {}).items() if k != "watch"}
            case.query.pop("resourceVersion", None)  # one from the future is answered with 504, as by a real server
            answer = case.call(base_url=api.server.url, headers=HEADERS, session=session, timeout=30)
            assert answer.status_code < 500, answer.text

        send()
    session.close()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "spec", "name", "containers", "template", "status"]), inner)
    ),
    max_leaves=12,
)
PLACES = ["pods", "nodes", "services", "events", "resourcequotas", "secrets", "limitranges", "namespaces"]
METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET"]
KINDS = ["application/json", "application/merge-patch+json", "application/json-patch+json", "application/yaml"]
KINDS += ["application/strategic-merge-patch+json", "application/apply-patch+yaml", "text/plain", "nonsense"]


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(METHODS),
    st.sampled_from(PLACES),
    st.sampled_from(["", "/x", "/x/status", "/x/scale", "/x/binding", "/x/eviction", "/x/log"]),
    JSON,
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(["labelSelector", "fieldSelector", "limit", "continue", "dryRun", "force", "fieldManager"]),
        st.text(max_size=12),
        max_size=2,
    ),
)
def test_requests_made_of_anything_never_fail_it(
    api: Api, method: str, plural: str, rest: str, body: Any, kind: str, query: dict[str, str]
) -> None:
    home = "" if plural in ("nodes", "namespaces") else "/namespaces/default"
    url = f"{api.server.url}/api/v1{home}/{plural}{rest}"
    answer = requests.request(
        method, url, json=body, params=query, headers={**HEADERS, "Content-Type": kind}, timeout=30
    )
    assert answer.status_code < 500, answer.text


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(KINDS))
def test_bytes_that_are_no_object_are_refused(api: Api, body: bytes, kind: str) -> None:
    url = f"{api.server.url}/api/v1/namespaces/default/pods"
    answer = requests.post(url, data=body, headers={**HEADERS, "Content-Type": kind}, timeout=30)
    assert 400 <= answer.status_code < 500, answer.text


def typed(type_name: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Objects with the right types and any values."""
    fields = list(types.fields(type_name).values())
    if depth > 7:
        return st.just({})

    @st.composite
    def build(draw: Any) -> Any:
        chosen = draw(st.lists(st.sampled_from(fields), max_size=5, unique_by=lambda f: f.name)) if fields else []
        chosen += [f for f in fields if f.required and draw(st.booleans())]
        return {f.name: draw(of_field(f, depth)) for f in chosen}

    return build()


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.sampled_from(["", "a", "x-1", "In", "Exists", "Never", "100%", "Indexed", "0/1"]),
    "int": st.sampled_from([-1, 0, 1, 2, 2**31, 2**62]),
    "bool": st.booleans(),
    "float": st.sampled_from([0.5, 1]),
    "Time": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00+02:00"]),
    "MicroTime": st.just("2026-01-01T00:00:00.000000Z"),
    "Quantity": st.sampled_from(["1", "500m", "-1", "1Gi", 3]),
    "IntOrString": st.sampled_from([1, -1, "25%", "x"]),
    "bytes": st.just("YQ=="),
    "any": st.sampled_from([{}, {"type": "object"}, "x", 1, [1]]),
}


def of_field(field: types.Field, depth: int) -> st.SearchStrategy[Any]:
    inner = PRIMITIVES[field.base] if field.primitive else st.deferred(lambda: typed(field.base, depth + 1))
    if field.shape.endswith("["):
        inner = st.lists(inner, max_size=2)
    return st.dictionaries(st.sampled_from(["a", "cpu", "x/y"]), inner, max_size=2) if "{" in field.shape else inner


STORABLE = [r for r in builtin.catalogue(native_gang=True).by_path.values() if "list" in r.verbs]
TABLE = {**HEADERS, "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_well_typed_object_is_stored_or_refused_and_can_be_shown(api: Api, data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from(STORABLE))
    body = data.draw(typed(resource.type))
    body["metadata"] = {"generateName": "x-", "labels": {"a": "b"}}
    for name in ("apiVersion", "kind"):
        body.pop(name, None)
    url = api.server.url + openapi.base_path(resource).format(namespace="default")
    made = requests.post(url, json=body, headers=HEADERS, timeout=30)
    assert made.status_code in (201, 400, 403, 404, 422), made.text
    if made.status_code == 201:
        name = made.json()["metadata"]["name"]
        table = requests.get(f"{url}/{name}", headers=TABLE, timeout=30)
        assert table.status_code == 200, table.text
        patch = {"metadata": {"annotations": {"x": "y"}}}
        media = {**HEADERS, "Content-Type": "application/strategic-merge-patch+json"}
        change = requests.patch(f"{url}/{name}", json=patch, headers=media, timeout=30)
        assert change.status_code in (200, 422, 403), change.text
        gone = requests.delete(f"{url}/{name}", headers=HEADERS, timeout=30)
        assert gone.status_code == 200, gone.text
