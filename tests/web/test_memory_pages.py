"""The explorer of a run with a memory: paths against memory on the answer page and on the run page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgcf.pipeline import evaluate_on_test
from kgcf.runs.run import Run
from kgcf.web.application import make_application
from kgcf.web.served_run import ServedRun
from tests.memory.remembering import make_remembering
from tests.web.clients import TestClient


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, TestClient]]:
    place: Path = tmp_path_factory.mktemp("memory pages")
    run = make_remembering(place).both
    evaluate_on_test(run)
    served = ServedRun("town", run, "train", place / "review.sqlite")
    yield run, TestClient(make_application({"town": served}), "http://127.0.0.1:8000")
    served.close()


def test_an_answer_says_how_much_is_paths_and_how_much_is_memory(remembering: tuple[Run, TestClient]) -> None:
    run, client = remembering
    answer = run.predict("e3", "friend", top=1, observed="train")[0]
    asked = {"head": "e3", "relation": "friend", "tail": answer.tail}
    text = client.get("/runs/town/answer", params=asked).text
    panel = text.split('id="beside-panel"')[1].split("</section>")[0]
    found = client.get("/api/runs/town/answer", params=asked).json()
    memory = found["memory"]
    assert f"paths give {memory['path_logit']:+.3f}" in panel
    assert f"memory {memory['memory_logit']:+.3f}" in panel
    assert memory["alike"][0]["head"]["label"] in panel
    assert found["logit"] == pytest.approx(answer.logit, abs=1e-4)


def test_lists_of_answers_and_missing_links_are_those_of_the_blend(remembering: tuple[Run, TestClient]) -> None:
    run, client = remembering
    asked = {"head": "e3", "relation": "friend"}
    found = client.get("/api/runs/town/question", params=asked).json()["answers"]
    wanted = run.predict("e3", "friend", observed="train")
    assert [row["logit"] for row in found] == pytest.approx([answer.logit for answer in wanted])
    missing = client.get("/api/runs/town/missing", params={"name": "e3"}).json()["answers"]
    triples = [(row["head"], row["relation"], row["tail"]) for row in missing]
    assert [row["logit"] for row in missing] == pytest.approx(run.score(triples, observed="train"), abs=1e-4)


def test_the_run_page_has_a_row_for_each(remembering: tuple[Run, TestClient]) -> None:
    _, client = remembering
    text = client.get("/runs/town/about").text
    table = text.split('id="parts"')[1].split("</table>")[0]
    assert "paths alone" in table
    assert "memory alone" in table
    assert "Memory is used because memory.enabled is on" in text
