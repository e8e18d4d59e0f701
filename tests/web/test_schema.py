"""Whatever is asked of the API, it answers with a status that its OpenAPI description has, and never with a 500."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.web.clients import TestClient

TRICKY = st.sampled_from(
    [
        "",
        "?",
        "e0",
        "e5",
        "parent",
        "friend",
        "#3",
        "#999999",
        "José",
        "\x00",
        "\ud7ff",
        "%00",
        "../..",
        "' OR 1=1 --",
        "-1",
        "1e309",
        "NaN",
        "true",
        "all",
    ]
)
TEXTS = st.one_of(TRICKY, st.text(st.characters(codec="utf-8"), max_size=30))
SETTINGS = settings(
    max_examples=6, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)


SURROGATE = rb'{"link": 1, "verdict": "accept", "reviewer": "\ud800"}'  # half of a pair


def operations(client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    schema = client.get("/api/openapi.json").json()
    return [(path, method, one) for path, methods in schema["paths"].items() for method, one in methods.items()]


def values_of(schema: dict[str, Any], components: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema, mostly, and some that do not."""
    if "$ref" in schema:
        return values_of(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema:
        return st.one_of(*(values_of(one, components) for one in schema["anyOf"]))
    kind = schema.get("type")
    if "enum" in schema:
        return st.one_of(st.sampled_from(schema["enum"]), TEXTS)
    if kind == "integer":
        return st.one_of(
            st.integers(schema.get("minimum", -3), min(schema.get("maximum", 50), 50)), st.integers(), TEXTS
        )
    if kind == "number":
        return st.one_of(st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
    if kind == "object":
        needed, fields = schema.get("required", []), schema.get("properties", {})
        wanted = {name: values_of(one, components) for name, one in fields.items()}
        return st.fixed_dictionaries(
            {name: wanted[name] for name in needed}, optional={n: s for n, s in wanted.items() if n not in needed}
        )
    return {"boolean": st.booleans(), "null": st.none()}.get(str(kind), TEXTS)


def test_the_description_has_every_page(client: TestClient) -> None:
    described = {(path, method) for path, method, _ in operations(client)}
    for page in ("search", "entity", "missing", "question", "answer", "about", "review"):
        assert (f"/api/runs/{{run}}/{page}", "get") in described
    text = client.get("/api").text
    assert all(path in text for path, _ in described)


@SETTINGS
@given(st.data())
def test_nothing_that_is_asked_breaks_it(client: TestClient, data: st.DataObject) -> None:
    quiet = TestClient(client.app, "http://127.0.0.1:8000", raise_server_exceptions=False)
    components = quiet.get("/api/openapi.json").json()["components"]["schemas"]
    for path, method, operation in operations(client):
        given_values: dict[str, Any] = {}
        address = path.replace("{run}", "family")
        for one in operation.get("parameters", []):
            value = data.draw(values_of(one["schema"], components), one["name"])
            if one["in"] == "query" and (one.get("required") or data.draw(st.booleans())):
                given_values[one["name"]] = value
            elif one["in"] == "path" and one["name"] != "run":
                address = address.replace(f"{{{one['name']}}}", quote(str(value), safe="") or "0")
        body = None
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]["schema"]
            body = data.draw(values_of(content, components), "body")
        headers = {"content-type": "application/json"}
        found = quiet.request(method, address, params=given_values, content=_json(body), headers=headers)
        assert found.status_code in (*map(int, operation["responses"]), 405), (
            method,
            address,
            given_values,
            body,
            found.text,
        )
        assert found.status_code < 500
        if found.status_code >= 400:
            assert set(found.json()) == {"status", "error", "suggestions"}


def _json(body: object) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 5000, SURROGATE])
def test_rubbish_is_refused(client: TestClient, body: bytes) -> None:
    found = client.post("/api/runs/family/review/decide", content=body, headers={"content-type": "application/json"})
    assert found.status_code in (400, 422)
    assert found.json()["error"]
