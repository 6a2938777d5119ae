"""Custom kinds: what a definition brings about, and what is wrong with wrong ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.local.api.serving import Api, served

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
MERGE = "application/merge-patch+json"
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"type": "string", "enum": ["hard", "soft"], "default": "soft"},
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[a-z]+$"}},
        "replicas": {"type": "integer", "default": 1},
    },
}


def definition() -> dict[str, Any]:
    status = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": copy.deepcopy(SPEC), "status": status}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "selectableFields": [{"jsonPath": ".spec.mode"}],
    }
    names = {"kind": "Thing", "plural": "things", "shortNames": ["th"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


def thing(name: str = "t", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


async def installed(api: Api) -> None:
    made = await api.ok("POST", CRDS, definition())
    status = (await api.ok("GET", f"{CRDS}/things.example.com"))["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {"NamesAccepted": "True", "Established": "True"}
    assert made["spec"]["names"]["singular"] == "thing" and status["storedVersions"] == ["v1"]


def test_objects_are_pruned_defaulted_and_shown() -> None:
    async def scene(api: Api) -> None:
        await installed(api)
        sent = thing(extra=1, free={"any": 1}, parts=[{"x": 1}], port="http", maybe=None)
        reply = await api("POST", THINGS, sent)
        assert reply.headers.getall("Warning") == [
            '299 - "unknown field \\"spec.extra\\""',
            '299 - "unknown field \\"spec.parts[0].x\\""',
        ]
        rest = {"size": 1, "mode": "soft", "replicas": 1, "port": "http", "maybe": None}
        assert reply.body["spec"] == {**rest, "free": {"any": 1}, "parts": [{"n": 7}]}
        table = await api.ok("GET", THINGS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size"]
        assert table["rows"][0]["cells"] == ["t", 1]
        found = await api.ok("GET", f"{THINGS}?fieldSelector=spec.mode%3Dhard")
        assert found["items"] == []
        words = await api.refused(400, "POST", f"{THINGS}?fieldValidation=Strict", thing("u", extra=1))
        assert words.endswith('strict decoding error: unknown field "spec.extra"')

    served(scene)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 10}, "spec.size in body should be less than or equal to 9"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": None}, "spec.size: Required value"),
        ({"mode": "odd"}, 'spec.mode: Unsupported value: "odd": supported values: "hard", "soft"'),
        ({"port": []}, "spec.port in body must be of type integer"),
        ({"labels": {"a": "B"}}, "spec.labels.a in body should match '^[a-z]+$'"),
    ],
)
def test_invalid_objects_are_refused_in_the_usual_words(change: dict[str, Any], words: str) -> None:
    async def scene(api: Api) -> None:
        await installed(api)
        told = await api.refused(422, "POST", THINGS, thing(**change))
        assert told.startswith('Thing.example.com "t" is invalid: ') and words in told

    served(scene)


def test_status_and_scale_are_subresources_of_their_own() -> None:
    async def scene(api: Api) -> None:
        await installed(api)
        made = await api.ok("POST", THINGS, {**thing(), "status": {"phase": "ignored"}})
        assert "status" not in made
        await api.ok("PATCH", f"{THINGS}/t", {"status": {"phase": "ignored"}}, Content_Type=MERGE)
        set_ = await api.ok("PATCH", f"{THINGS}/t/status", {"status": {"phase": "Running"}}, Content_Type=MERGE)
        assert set_["status"] == {"phase": "Running"} and set_["metadata"]["generation"] == 1
        await api.ok("PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": 4}}, Content_Type=MERGE)
        changed = await api.ok("GET", f"{THINGS}/t")
        assert changed["spec"]["replicas"] == 4 and changed["metadata"]["generation"] == 2
        await api.refused(
            415, "PATCH", f"{THINGS}/t", {"spec": {}}, Content_Type="application/strategic-merge-patch+json"
        )

    served(scene)


def test_a_definition_that_goes_takes_its_objects_along() -> None:
    async def scene(api: Api) -> None:
        await installed(api)
        await api.ok("POST", THINGS, thing())
        await api.ok("DELETE", f"{CRDS}/things.example.com")
        await api.refused(404, "GET", THINGS)
        await installed(api)
        assert (await api.ok("GET", THINGS))["items"] == []

    served(scene)


def broken(change: str) -> dict[str, Any]:
    made = definition()
    version = made["spec"]["versions"][0]
    match change:
        case "name":
            made["metadata"]["name"] = "other.example.com"
        case "scope":
            made["spec"]["scope"] = "Galaxy"
        case "storage":
            version["storage"] = False
        case "schema":
            del version["schema"]
        case "type":
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"].pop("type")
        case "pattern":
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mode"]["pattern"] = "("
        case "column":
            version["additionalPrinterColumns"][0]["jsonPath"] = "..["
        case "reference":
            version["schema"]["openAPIV3Schema"]["properties"]["x"] = {"type": "object", "$ref": "http://127.0.0.1/x"}
    return made


@pytest.mark.parametrize("change", ["name", "scope", "storage", "schema", "type", "pattern", "column", "reference"])
def test_wrong_definitions_are_refused(change: str) -> None:
    async def scene(api: Api) -> None:
        words = await api.refused(422, "POST", CRDS, broken(change))
        assert words.startswith("CustomResourceDefinition.apiextensions.k8s.io ")

    served(scene)
