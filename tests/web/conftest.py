"""One small run with friendly and hostile names, trained once; every test has its own server and review."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fastapi import FastAPI

from kgcf.data.source import read
from kgcf.pipeline import evaluate_on_test, fit
from kgcf.runs.run import Run
from kgcf.web.application import make_application
from kgcf.web.background import Background
from kgcf.web.review.store import ReviewStore
from kgcf.web.served_run import ServedRun
from tests.training.tiny import dataset, write_folder
from tests.web.clients import TestClient

NAMES = {
    "e0": "Ana María",
    "e1": "<script>alert(1)</script>",
    "e2": "../../etc/passwd",
    "e3": "A" * 10_000,
    "e4": "\u202eevil",
    "e5": "\x1b[31mred\x1b[0m",
    "e6": "José",
    "e7": "José",
    "e8": "مدينة طويلة",
    "e9": 'x" onmouseover="alert(2)',
    "e10": "{{ 7 * 7 }}",
}
HOSTILE = [label for label in NAMES if label not in ("e0", "e6", "e7")]
CHANGES = (
    "encoder.layers=2",
    "encoder.width=8",
    "decoder.hidden=8",
    "objective.negatives=4",
    "objective.alpha=0.3",
    "space.walks=2",
    "training.epochs=2",
    "training.batch_size=16",
    "training.remove=triple",
    "training.threads=1",
)


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("explorer")
    folder = write_folder(dataset(), place / "family")
    lines = (f"{label}\t{name}\n" for label, name in NAMES.items())
    (folder / "entity_names.tsv").write_text("".join(lines), encoding="utf-8")
    found = fit(read(folder), place / "family-run", changes=CHANGES)
    evaluate_on_test(found)
    return found


@pytest.fixture(scope="session")
def loaded(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRun]:
    found = ServedRun("family", run, "all", tmp_path_factory.mktemp("reviews") / "review.sqlite")
    yield found
    found.close()


@pytest.fixture(scope="session")
def application(loaded: ServedRun) -> FastAPI:
    return make_application({"family": loaded})


@pytest.fixture
def served(loaded: ServedRun, tmp_path: Path) -> Iterator[ServedRun]:
    """The run, with nothing judged, nothing measured and nothing running."""
    loaded.reviews = ReviewStore(tmp_path / "review.sqlite")
    loaded.background, loaded.diagnosing, loaded.diagnostics = Background(), Background(), None
    yield loaded
    loaded.background.stop()
    loaded.diagnosing.stop()


@pytest.fixture
def client(application: FastAPI, served: ServedRun) -> TestClient:
    return TestClient(application, "http://127.0.0.1:8000")
