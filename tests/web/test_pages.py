"""Every page and its twin: the same objects as in Python, names shown and never obeyed, errors with true statuses."""

import csv
import html
import io
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kgcf.prediction.answers import Answer
from kgcf.runs.run import Run
from kgcf.screen import inert
from kgcf.web.application import make_application
from kgcf.web.explanation_parts import bounded
from kgcf.web.guard import Access
from kgcf.web.review.store import Chosen
from kgcf.web.served_run import ServedRun, open_runs
from tests.web.clients import TestClient

from .conftest import HOSTILE, NAMES
from .test_review import wait_until

PAGES = (
    "/runs/family",
    "/runs/family/search?q=jose",
    "/runs/family/search?q=zzzz",
    "/runs/family/entity?name=e0",
    "/runs/family/missing?name=e0",
    "/runs/family/missing?name=e0&part=true",
    "/runs/family/question",
    "/runs/family/question?head=e0&relation=parent&known=true",
    "/runs/family/question?relation=parent&tail=e0&min_probability=1",
    "/runs/family/question?head=e0&tail=e5",
    "/runs/family/answer?head=e0&relation=grandparent&tail=e5",
    "/runs/family/about",
    "/runs/family/review",
    "/api",
)
ACTIVE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def page(client: TestClient, address: str) -> str:
    found = client.get(address)
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith("text/html")
    text: str = found.text
    return text


@pytest.mark.parametrize("address", PAGES)
def test_pages_run_no_inline_script_and_load_only_our_own_files(client: TestClient, address: str) -> None:
    found = client.get(address)
    text, policy = found.text, found.headers["content-security-policy"]
    assert found.status_code == 200
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    for attributes in re.findall(r"<script\b([^>]*)>", text):
        assert 'src="/static/' in attributes or 'type="application/json"' in attributes
    assert not re.search(r"<[^>]+\son\w+\s*=", text)
    assert not re.search(r"""(?:src|href|action)=["'](?!/|#|data:)""", text)
    assert "style=" not in text or "style-src-attr" in policy
    for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        assert client.get(html.unescape(file)).status_code == 200


def test_the_twins_return_what_python_returns(client: TestClient, run: Run) -> None:
    asked = client.get("/api/runs/family/question?head=e0&relation=parent&top=7&known=true").json()
    assert asked["answers"] == [asdict(a) for a in run.predict("e0", "parent", top=7, show_known=True)]
    turned = client.get("/api/runs/family/question?relation=parent&tail=e5").json()
    assert (turned["asked"], turned["answers"]) == (
        "head",
        [asdict(a) for a in run.predict(relation="parent", tail="e5")],
    )
    between = client.get("/api/runs/family/question?head=e0&tail=e5&relation=?").json()
    assert between["answers"] == [asdict(a) for a in run.predict("e0", tail="e5")]
    why = client.get("/api/runs/family/answer?head=e0&relation=grandparent&tail=e5&paths=3").json()
    assert why == json.loads(json.dumps(run.explain("e0", "grandparent", "e5", top=3).to_json()))
    backwards = client.get("/api/runs/family/answer?head=e0&relation=grandparent&tail=e5&asked=head").json()
    assert backwards == json.loads(json.dumps(run.explain("e0", "grandparent", "e5", asked="head").to_json()))


def test_least_probability_and_csv(client: TestClient, run: Run) -> None:
    answers = run.predict("e0", "parent", top=10)
    least = answers[3].probability
    asked = f"head=e0&relation=parent&min_probability={least!r}"
    found = client.get(f"/api/runs/family/question?{asked}").json()
    kept = [a for a in answers if a.probability >= least]
    assert [a["tail"] for a in found["answers"]] == [a.tail for a in kept]
    assert found["hidden_by_probability"] == len(answers) - len(kept)
    rows = list(csv.DictReader(io.StringIO(client.get(f"/api/runs/family/question.csv?{asked}").text)))
    assert [row["tail"] for row in rows] == [a.tail for a in kept]
    assert "question.csv?" in page(client, f"/runs/family/question?{asked}")


def test_facts_of_an_entity(client: TestClient, run: Run) -> None:
    found = client.get("/api/runs/family/entity?name=e5&every=true").json()
    graph = run.data.test.known
    entity = run.data.entities.id("e5")
    facts = {(h, r, t) for h, r, t in graph.triples.tolist() if entity in (h, t)}
    label, relation = run.data.entities.label, run.data.relations.label
    shown = {
        (group["side"], group["relation"]["label"], other["label"])
        for group in found["groups"]
        for other in group["others"]
    }
    expected = {("head", relation(r), label(t)) for h, r, t in facts if h == entity}
    assert shown == expected | {("tail", relation(r), label(h)) for h, r, t in facts if t == entity}
    assert found["facts"] == len(expected) + sum(t == entity for _, _, t in facts)


def test_names_are_found_whatever_their_accents(client: TestClient) -> None:
    hits = client.get("/api/runs/family/search?q=jose").json()["hits"]
    assert [hit["label"] for hit in hits] == ["e6", "e7"] or [hit["label"] for hit in hits] == ["e7", "e6"]
    assert all(hit["ambiguous"] for hit in hits)
    twins = client.get("/api/runs/family/entity", params={"name": "José"})
    assert twins.status_code == 409
    assert {one["label"] for one in twins.json()["suggestions"]} == {"e6", "e7"}


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_names_are_shown_not_run(client: TestClient, label: str) -> None:
    name = NAMES[label]
    for address in (
        f"/runs/family/entity?name={label}",
        f"/runs/family/missing?name={label}",
        f"/runs/family/question?head={label}&relation=parent&known=true&top=40",
        f"/runs/family/answer?head={label}&relation=parent&tail=e12",
        "/runs/family/search?" + urlencode({"q": name[:50]}),
    ):
        whole = page(client, address)
        assert "<script>alert" not in whole
        text = re.sub(r"<script type=.*?</script>", "", whole, flags=re.DOTALL)  # data, which nobody shows or runs
        assert 'onmouseover="alert' not in text
        assert not ACTIVE.search(text)
        assert inert(name[:40]) in html.unescape(re.sub(r"<[^>]*>", "", text))
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", text, re.DOTALL)[0]


def test_long_names_have_short_addresses(client: TestClient) -> None:
    text = page(client, "/runs/family/question?relation=parent&tail=e12&known=true&top=40")
    assert all(len(address) < 1000 for address in re.findall(r'href="([^"]*)"', text))


def test_half_links_unseen_in_training_are_marked_in_words(client: TestClient, run: Run) -> None:
    unseen = [a for a in run.predict("e0", "grandparent", top=40, show_known=True) if not a.tail_seen]
    assert unseen
    text = page(client, "/runs/family/question?head=e0&relation=grandparent&top=40&known=true")
    assert text.count("Training has no fact “… grandparent") == len(unseen)
    assert "known</span>" in text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/nowhere", 404, "There is no page at this address"),
        ("/runs/other", 404, "There is no run called “other” here. Choices: family."),
        ("/runs/family/entity?name=nobody", 404, "There is no entity called “nobody”"),
        ("/runs/family/entity?name=%3Cscript%3E", 404, "There is no entity called"),
        ("/runs/family/question?head=e0&relation=parents", 404, "There is no relation called “parents”"),
        ("/runs/family/question?head=e0&relation=parent&tail=e1", 422, "leave the third one empty"),
        ("/runs/family/question?head=e0&relation=parent&top=9999", 422, "top"),
        ("/runs/family/question?head=e0&relation=parent&min_probability=nan", 422, "min_probability"),
        ("/runs/family/entity", 422, "name"),
        ("/runs/family/review?state=maybe", 422, "state"),
        ("/static/../api.py", 404, ""),
        ("/static/nothing.css", 404, "There is no such file"),
    ],
)
def test_what_cannot_be_had_is_said(client: TestClient, address: str, status: int, said: str) -> None:
    found = client.get(address)
    assert found.status_code == status
    assert said in html.unescape(found.text)
    assert "Back to the search" in found.text
    twin = client.get(f"/api{address}")
    assert twin.status_code == status
    assert set(twin.json()) == {"status", "error", "suggestions"}
    assert "<script>" not in found.text


def test_an_unknown_name_leads_on(client: TestClient) -> None:
    found = client.get("/api/runs/family/entity?name=ana%20m").json()
    (one,) = found["suggestions"]
    assert one["name"] == "Ana María"
    assert client.get(one["address"]).status_code == 200


def test_the_run_page_says_what_the_folder_says(client: TestClient, run: Run, served: ServedRun) -> None:
    page(client, "/runs/family/about")  # begins to measure
    wait_until(lambda: served.diagnosing.progress.state != "running")
    text, found = page(client, "/runs/family/about"), client.get("/api/runs/family/about").json()
    results = json.loads(run.folder.file("results.json").read_text(encoding="utf-8"))
    assert found["metrics"]["mrr"] == results["mrr"]
    assert f"{results['mrr']:.3f}" in text
    assert found["protocol"]["filter"] == results["protocol"]["filter"]
    assert html.escape(results["protocol"]["filter"]) in text
    assert [y for _, y in found["learning"]["points"]] == [entry["validation_mrr"] for entry in run.folder.history()]
    assert found["settings"]["encoder"]["width"] == 8
    assert served.diagnosing.progress.state == "done", served.diagnosing.progress
    assert found["diagnostics"]["matches"]["triples"] == len(run.data.graph)
    assert "placebo: roles shuffled" in text


def test_several_runs_have_a_list(run: Run, tmp_path: Path) -> None:
    runs = open_runs([run.folder.path, run.folder.path], reviews=tmp_path)
    assert list(runs) == ["family-run", "family-run-2"]
    with TestClient(make_application(runs), "http://localhost") as client:
        text = page(client, "/")
        assert 'href="/runs/family-run-2"' in text
        assert [one["key"] for one in client.get("/api/runs").json()] == list(runs)
        assert client.get("/nothing").status_code == 404
    assert not run.folder.file("review.sqlite").exists()


def form_of(text: str, action: str, **values: str) -> dict[str, str]:
    """The fields of the form with this action, as a browser without script would send them."""
    inner = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', text, re.DOTALL)
    assert inner is not None
    fields = re.findall(r'<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"', inner[0])
    return {name: html.unescape(value) for name, value in fields} | values


def test_a_review_without_any_script(client: TestClient, served: ServedRun) -> None:
    base = "/runs/family/review"
    text = page(client, base)
    assert "Nothing to judge yet" in text
    started = client.post(f"{base}/propose", data=form_of(text, f"{base}/propose", relation="grandparent", top="15"))
    assert started.status_code == 200  # after the way back to the list
    wait_until(lambda: served.background.progress.state != "running")
    assert served.background.progress.state == "done", served.background.progress
    text = page(client, base)
    assert text.count('name="verdict" value="accept"') == 15
    first = form_of(text, f"{base}/decide", verdict="accept", reviewer="Ann Ó", note="<b>sure</b>")
    text = client.post(f"{base}/decide", data=first).text
    assert 'value="Ann Ó"' in text  # remembered
    assert text.count('name="verdict" value="accept"') == 14
    judged = page(client, f"{base}?state=accept")
    assert "Accepted by Ann Ó" in judged
    assert "&lt;b&gt;sure&lt;/b&gt;" in judged
    assert "1 of 1 judged links were accepted" in judged
    again = client.post(f"{base}/decide", data=first | {"verdict": "reject", "reviewer": "Bea"})
    assert again.status_code == 409
    assert "Somebody was faster" in again.text
    client.post(f"{base}/undo", data=form_of(judged, f"{base}/undo"))
    assert served.reviews.count(Chosen("open")) == 15
    nameless = client.post(f"{base}/decide", data=first | {"reviewer": " "})
    assert nameless.status_code == 422


def test_accepted_links_are_facts(client: TestClient, served: ServedRun, run: Run, tmp_path: Path) -> None:
    api = "/api/runs/family/review"
    assert client.post(f"{api}/propose", json={"relation": "friend", "top": 5}).status_code == 202
    wait_until(lambda: served.background.progress.state == "done")
    links = client.get(api).json()["links"]
    assert [link["answer"] for link in links] == [asdict(a) for a in run.complete("friend", top=5)]
    for link, verdict in zip(links, ("accept", "accept", "reject"), strict=False):
        values = {"link": link["id"], "verdict": verdict, "reviewer": "Ann", "seen": 0}
        assert client.post(f"{api}/decide", json=values).json()["decision"]["verdict"] == verdict
    exported = client.get(f"{api}/export.tsv")
    assert exported.headers["content-disposition"] == 'attachment; filename="accept.tsv"'
    rows = [line.split("\t")[:3] for line in exported.text.splitlines()[1:]]
    assert rows == [[link["answer"][part] for part in ("head", "relation", "tail")] for link in links[:2]]
    for form in ("tsv", "nt"):
        facts = tmp_path / f"facts.{form}"
        facts.write_text(client.get(f"{api}/facts.{form}").text, encoding="utf-8")
        head, relation, tail = rows[0]
        assert tail not in [a.tail for a in run.predict(head, relation, graph=facts, top=100)]
        assert tail in [a.tail for a in run.predict(head, relation, top=100)]
        known = run.predict(head, relation, graph=facts, top=100, show_known=True)
        assert next(a for a in known if a.tail == tail).known
    assert client.get(f"{api}/export.xyz").status_code == 422


def test_a_completion_can_be_stopped_and_keeps_nothing(
    client: TestClient, served: ServedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*given: Any) -> list[Answer]:
        for _ in range(10_000):
            given[4](1)  # advance
            time.sleep(0.002)
        return []

    monkeypatch.setattr("kgcf.web.served_run.complete", slowly)
    api = "/api/runs/family/review"
    assert client.post(f"{api}/propose", json={}).status_code == 202
    again = client.post(f"{api}/propose", json={})
    assert again.status_code == 409
    assert "is still running" in again.json()["error"]
    assert "data-progress" in page(client, "/runs/family/review")
    assert client.get("/api/runs/family/question?head=e0&relation=parent").status_code == 200  # meanwhile
    found = client.post(f"{api}/stop", json={}).json()
    assert (found["state"], found["message"]) == ("stopped", "Stopped; nothing of it was kept.")
    assert 0 < found["done"] < 10_000
    assert served.reviews.count(Chosen("all")) == 0


def test_the_style_of_an_explanation_stays_inside_it() -> None:
    variables = ":root { --a: 1; }\n@media screen and (x: y) {\n :root { --a: 2; }\n}\n"
    given = variables + "body { margin: 0; } h1 { x: y; } .body { z: 1; }"
    found = bounded(given)
    outside, inside = found.split("@scope (#why) {")
    assert re.sub(r"\s+", " ", outside) == ":root { --a: 1; } @media screen and (x: y) { :root { --a: 2; } } "
    assert ":scope { margin: 0; } h1 { x: y; } .body { z: 1; }" in inside
    assert ":root" not in inside


def test_the_page_of_an_answer_is_that_of_the_explanation(client: TestClient, run: Run) -> None:
    from kgcf.explanation.page import render_page

    text = page(client, "/runs/family/answer?head=e0&relation=grandparent&tail=e5")
    whole = render_page(run.explain("e0", "grandparent", "e5"))
    body = re.findall(r"<main>.*?</main>", whole, re.DOTALL)[0]
    assert body in text
    assert re.findall(r'<script type="application/json".*?</script>', whole, re.DOTALL)[0] in text


def test_access_is_remembered_by_the_server_alone() -> None:
    assert "secret" not in repr(Access(token="a long token"))
    assert "a long token" not in repr(Access(token="a long token"))
