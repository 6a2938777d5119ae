"""Malformed requests, trespass and the small print of HTTP: the statuses a real server gives."""

from __future__ import annotations

import io

import pytest

from tests.local.api.serving import MAPS, PODS, TOKEN, Api, config, pod, served


def test_no_token_no_entry_and_no_rights_no_deeds() -> None:
    async def scene(api: Api) -> None:
        for token in ("", "wrong"):
            reply = await api("GET", PODS, token=token)
            assert (reply.status, reply.body["reason"]) == (401, "Unauthorized")
        account = await api.ok("GET", "/api/v1/namespaces/default/serviceaccounts/default")
        asked = {"spec": {"expirationSeconds": 600}}
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        token = (await api.ok("POST", path, asked))["status"]["token"]
        reply = await api("GET", PODS, token=token)
        user = "system:serviceaccount:default:default"
        words = (
            f'pods is forbidden: User "{user}" cannot list resource "pods" in API group "" in the namespace "default"'
        )
        assert (reply.status, reply.body["message"]) == (403, words)
        binding = {
            "metadata": {"name": "read"},
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }
        await api.ok("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
        assert (await api("GET", PODS, token=token)).status == 200
        assert (await api("POST", PODS, pod(), token=token)).status == 403
        assert (await api("GET", "/api/v1/namespaces/default/secrets", token=token)).status == 403
        assert (await api("GET", "/api/v1/namespaces/kube-system/pods", token=token)).status == 403
        assert (await api("GET", "/apis", token=token)).status == 200
        await api.ok("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
        assert (await api("GET", PODS, token=token)).status == 401, account["metadata"]["name"]

    served(scene)


def test_reviews_say_what_a_user_may_do() -> None:
    async def scene(api: Api) -> None:
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        about = {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}
        review = await api.ok("POST", path, {"spec": {"user": "somebody", **about}})
        assert review["status"] == {"allowed": False}
        mine = await api.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": about})
        assert mine["status"] == {"allowed": True}
        who = await api.ok("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert who["status"]["userInfo"]["username"] == "muster-admin"
        token = {"spec": {"token": TOKEN}}
        known = await api.ok("POST", "/apis/authentication.k8s.io/v1/tokenreviews", token)
        assert known["status"]["authenticated"] is True

    served(scene)


def test_bodies_the_server_cannot_read() -> None:
    async def scene(api: Api) -> None:
        kind = b"\x0a\x07apps/v1\x12\x0aDeployment"
        body = b"k8s\x00\x0a\x15" + kind + b"\x12\x00"
        words = await api.refused(415, "POST", PODS, body, Content_Type="application/vnd.kubernetes.protobuf")
        assert "kubectl create ... --dry-run=client -o yaml | kubectl apply -f -" in words
        await api.refused(415, "POST", PODS, b"<a/>", Content_Type="application/xml")
        large = await api("POST", PODS, io.BytesIO(b"[" + b" " * (3 << 20) + b"]"))
        assert large.status == 413 and large.body["reason"] == "RequestEntityTooLarge"
        await api.refused(415, "PATCH", f"{PODS}/x", b"{}", Content_Type="application/json")
        for body in (b"", b"{", b"[]", b"1", b"null", b'{"metadata": 1}', b"\xff", b"[" * 5000):
            await api.refused(400, "POST", PODS, body)
        for body in (b"a: 99999999999999999999999", b"a: &x [1]\nb: [*x, *x]", b"\x00", b"a: [", b'a: "\\uD800"'):
            await api.refused(400, "POST", PODS, body, Content_Type="application/yaml")
        deep = b'{"metadata":{"name":"x"},"data":' + b'{"a":' * 220 + b"1" + b"}" * 220 + b"}"
        await api.refused(400, "POST", MAPS, deep)
        words = await api.refused(400, "POST", PODS, {**pod(), "kind": "Job"})
        assert words == "the kind in the data (Job) does not match the expected kind (Pod)"
        wrong = pod(nodeName=3)
        words = await api.refused(400, "POST", PODS, wrong)
        assert "cannot unmarshal number into Go struct field" in words and "nodeName of type string" in words

    served(scene)


def test_json_as_plain_text_and_yaml_are_read() -> None:
    async def scene(api: Api) -> None:
        await api.ok("POST", MAPS, config("a", x="1"), Content_Type="text/plain")
        await api.ok("POST", MAPS, b"metadata: {name: b}\ndata: {x: '1'}", Content_Type="application/yaml")

    served(scene)


def test_unknown_fields_are_dropped_told_of_or_refused() -> None:
    async def scene(api: Api) -> None:
        wrong = pod(contaners=[])
        reply = await api("POST", PODS, wrong)
        assert reply.status == 201 and "contaners" not in reply.body["spec"]
        assert reply.headers["Warning"] == '299 - "unknown field \\"spec.contaners\\""'
        wrong["metadata"]["name"] = "q"
        words = await api.refused(400, "POST", f"{PODS}?fieldValidation=Strict", wrong)
        head = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        assert words == head + 'unknown field "spec.contaners"'
        reply = await api("POST", f"{PODS}?fieldValidation=Ignore", wrong)
        assert reply.status == 201 and "Warning" not in reply.headers
        await api.refused(400, "POST", f"{PODS}?fieldValidation=Maybe", wrong)

    served(scene)


@pytest.mark.parametrize(
    ("code", "method", "path"),
    [
        (404, "GET", "/api/v1/nothings"),
        (404, "GET", "/apis/nothing.io/v1/things"),
        (404, "GET", "/api/v2"),
        (404, "POST", "/api/v1/nothings"),
        (404, "GET", f"{PODS}/none"),
        (404, "GET", f"{PODS}/x/nothing"),
        (404, "GET", "/api/v1/pods/x"),
        (405, "POST", "/api/v1/pods"),
        (405, "POST", f"{PODS}/x"),
        (405, "PUT", PODS),
        (405, "PATCH", PODS),
        (405, "POST", "/version"),
        (405, "GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        (400, "GET", f"{PODS}?watch=perhaps"),
        (400, "GET", f"{PODS}?limit=many"),
        (400, "GET", f"{PODS}?labelSelector=a%20b"),
        (400, "GET", f"{PODS}?labelSelector=a%20in%20(b"),
        (400, "GET", f"{PODS}?fieldSelector=spec.nothing=x"),
        (400, "GET", f"{PODS}?continue=nonsense"),
        (400, "GET", f"{PODS}?resourceVersion=abc"),
        (400, "GET", f"{PODS}?resourceVersionMatch=Exact"),
        (504, "GET", f"{PODS}?resourceVersion=999999999999999999"),
        (410, "GET", f"{PODS}?watch=1&resourceVersion=1"),
        (400, "POST", f"{PODS}?dryRun=Some"),
    ],
)
def test_bad_requests_get_the_status_of_a_real_server(code: int, method: str, path: str) -> None:
    async def scene(api: Api) -> None:
        await api.refused(code, method, path, b"{}")

    served(scene)


def test_paths_end_in_slashes_and_booleans_in_any_spelling() -> None:
    async def scene(api: Api) -> None:
        assert (await api.ok("GET", "/version/"))["gitVersion"].startswith("v1.")
        assert (await api.ok("GET", "/api/"))["versions"] == ["v1"]
        assert (await api.ok("GET", f"{PODS}/"))["items"] == []
        first = await api.events(f"{PODS}?watch=True&timeoutSeconds=1&allowWatchBookmarks=1", 1)
        assert first == []

    served(scene)


def test_discovery_in_both_forms_agrees() -> None:
    async def scene(api: Api) -> None:
        plain = {g["name"] for g in (await api.ok("GET", "/apis"))["groups"]}
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        reply = await api("GET", "/apis", Accept=accept)
        assert "as=APIGroupDiscoveryList" in reply.headers["Content-Type"]
        assert {g["metadata"]["name"] for g in reply.body["items"]} == plain
        core = await api("GET", "/api", Accept=accept)
        found = {r["resource"] for r in core.body["items"][0]["versions"][0]["resources"]}
        listed = (await api.ok("GET", "/api/v1"))["resources"]
        assert found == {r["name"] for r in listed if "/" not in r["name"]}
        etag = (await api("GET", "/openapi/v2")).headers["ETag"]
        assert (await api("GET", "/openapi/v2", If_None_Match=etag)).status == 304

    served(scene)


def test_impersonation_needs_the_right_to_it() -> None:
    async def scene(api: Api) -> None:
        words = await api.refused(403, "GET", PODS, Impersonate_User="eve")
        assert 'User "eve" cannot list resource "pods"' in words
        assert (await api("GET", PODS, Impersonate_User="eve", Impersonate_Group="system:masters")).status == 200

    served(scene)
