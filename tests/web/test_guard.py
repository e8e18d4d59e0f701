"""Who may ask, from where, and how much."""

import pytest

from kgcf.web.application import make_application
from kgcf.web.guard import Access, access_for
from kgcf.web.limits import LIMITS
from kgcf.web.served_run import ServedRun
from tests.web.clients import TestClient

TOKEN = "correct horse battery"
DECIDE = "/api/runs/family/review/decide"
UNDO = "/runs/family/review/undo"
VALUES = {"link": 1, "verdict": "accept", "reviewer": "Ann"}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5", "", "localhost.evil.example"]
)
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    for address in ("/", "/api/runs", "/static/explorer.css"):
        found = client.get(address, headers={"host": host})
        assert found.status_code == 421
        assert "does not answer to that host name" in found.text
    assert client.get("/api/runs", headers={"host": "localhost:9"}).status_code == 200
    assert client.get("/api/runs", headers={"host": "[::1]:8000"}).status_code == 200


def test_large_requests_are_refused(client: TestClient) -> None:
    for body in (b"x" * (LIMITS.body + 1), (b"x" * 1000 for _ in range(LIMITS.body // 1000 + 1))):
        found = client.post(DECIDE, content=body, headers={"content-type": "application/json"})
        assert found.status_code == 413
        assert "64,000 bytes" in found.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example", "content-type": "application/json"},
        {"origin": "null", "content-type": "application/json"},
        {"origin": "http://127.0.0.1:9999", "content-type": "application/json"},
        {"sec-fetch-site": "cross-site", "content-type": "application/json"},
        {"sec-fetch-site": "same-site", "content-type": "application/json"},
        {"content-type": "text/plain"},
        {},
    ],
)
def test_changes_come_from_our_own_pages(client: TestClient, headers: dict[str, str]) -> None:
    found = client.post(DECIDE, content=b'{"link": 1, "verdict": "accept", "reviewer": "Ann"}', headers=headers)
    assert found.status_code == 403
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert client.post(DECIDE, json=VALUES, headers=own).status_code == 422  # passed: there is no such link
    assert client.post(DECIDE, json=VALUES).status_code == 422


def test_a_form_carries_the_secret_of_this_server(client: TestClient, served: ServedRun) -> None:
    secret = make_application({"family": served}).state.access.secret
    for given in ({}, {"secret": ""}, {"secret": secret}, {"secret": "é"}):
        found = client.post(UNDO, data={"reviewer": "Ann", **given})
        assert found.status_code == 403
        assert "load the page again" in found.text
    own = client.app.state.access.secret  # type: ignore[attr-defined]
    assert client.post(UNDO, data={"reviewer": "Ann", "secret": own}).status_code == 404  # nothing to undo


@pytest.fixture
def guarded(served: ServedRun) -> TestClient:
    access = Access(hosts=("kgcf.example",), token=TOKEN)
    return TestClient(make_application({"family": served}, access), "http://kgcf.example", follow_redirects=False)


def test_a_token_is_asked_for(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgcf.web.guard._PAUSE", 0.0)
    for address in ("/", "/runs/family", "/runs/family/review", "/nothing"):
        found = guarded.get(address)
        assert found.status_code == 401
        assert 'name="token"' in found.text
        assert "family-run" not in found.text
    assert guarded.get("/api/runs").json()["status"] == 401
    for wrong in ("", "wrong", TOKEN[:-1], TOKEN + "x", "é"):
        assert guarded.get("/api/runs", headers={"authorization": f"Bearer {wrong}".encode()}).status_code == 401
        assert guarded.get("/", params={"token": wrong}).status_code == 401
        assert guarded.post("/access", data={"token": wrong}).status_code == 401
        assert guarded.get("/", headers={"cookie": f"kgcf-access={wrong}".encode()}).status_code == 401
    assert guarded.get("/static/explorer.css").status_code == 200
    assert guarded.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_leaves_the_address_and_is_remembered(guarded: TestClient) -> None:
    found = guarded.get("/runs/family/entity", params={"token": TOKEN, "name": "e0"})
    assert (found.status_code, found.headers["location"]) == (303, "/runs/family/entity?name=e0")
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert guarded.get("/runs/family/entity?name=e0").status_code == 200


def test_the_token_can_be_typed(guarded: TestClient) -> None:
    found = guarded.post("/access", data={"token": f" {TOKEN} "})
    assert (found.status_code, found.headers["location"]) == (303, "/")
    assert guarded.get("/api/runs").status_code == 200


def test_other_addresses_get_a_token() -> None:
    assert access_for("127.0.0.1", None).token is None
    assert access_for("localhost", None).token is None
    assert access_for("::1", None).token is None
    assert len(access_for("0.0.0.0", None).token or "") >= 32
    assert access_for("0.0.0.0", None).token != access_for("0.0.0.0", None).token
    assert access_for("10.0.0.7", "given by us").token == "given by us"
    assert access_for("0.0.0.0", None).is_ours("10.1.2.3:8000")
    assert access_for("10.0.0.7", None).is_ours("10.0.0.7:8000")
    assert not access_for("10.0.0.7", None).is_ours("10.0.0.8")
    assert not access_for("0.0.0.0", None).is_ours("evil.example")
    assert access_for("0.0.0.0", None, ["graphs.example"]).is_ours("graphs.example")


def test_pages_are_not_kept_and_files_are(client: TestClient) -> None:
    assert client.get("/runs/family").headers["cache-control"] == "no-store"
    assert "immutable" in client.get("/static/explorer.css").headers["cache-control"]
    for address in ("/runs/family", "/nothing", "/api/runs"):
        headers = client.get(address).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
