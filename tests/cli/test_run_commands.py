"""train, evaluate, predict, complete and tune as a user types them."""

import json
from pathlib import Path

import pytest

from tests.cli.test_bad_input import kgcf
from tests.training.tiny import TINY, dataset, write_folder

QUICK = [p for c in (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1") for p in ("--set", c)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    data = write_folder(dataset(), folder / "tiny")
    done = kgcf("train", data, "--preset", "nbfnet", "--output", folder / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "epoch 1" in done.stderr
    assert "MRR" in done.stdout
    return folder / "run"


def test_predict_in_three_directions(run: Path) -> None:
    for given in (("--head", "e1", "--relation", "parent"), ("--relation", "parent", "--tail", "e9")):
        done = kgcf("predict", run, *given, "--top", "3", "--json")
        assert done.returncode == 0, done.stderr
        answers = json.loads(done.stdout)
        assert len(answers) == 3
        assert not any(answer["known"] for answer in answers)
        said = [a["logit"] for a in answers if a["reached"]]
        assert said == sorted(said, reverse=True)
        assert all((a["logit"] is None) == (not a["reached"]) for a in answers)
    done = kgcf("predict", run, "--head", "e1", "--relation", "?", "--tail", "e9", "--known")
    assert done.returncode == 0, done.stderr
    assert "grandparent" in done.stdout


def test_mistakes_in_questions(run: Path, tmp_path: Path) -> None:
    wrong = kgcf("predict", run, "--head", "e1", "--relation", "parnet")
    assert wrong.returncode == 1
    assert "no relation called 'parnet'. Did you mean 'parent'" in " ".join(wrong.stderr.split())
    few = kgcf("predict", run, "--head", "e1")
    assert few.returncode == 1
    assert "Give two of --head, --relation and --tail" in " ".join(few.stderr.split())
    none = kgcf("predict", tmp_path, "--head", "e1", "--relation", "parent")
    assert none.returncode == 1
    assert "is not a run" in " ".join(none.stderr.split())


def test_candidates_and_a_new_graph(run: Path, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("e3\ne4\n")
    done = kgcf("predict", run, "--head", "e1", "--relation", "friend", "--candidates", tmp_path / "only.txt", "--json")
    assert {answer["tail"] for answer in json.loads(done.stdout)} <= {"e3", "e4"}
    (tmp_path / "new.tsv").write_text("anna\tparent\tben\nben\tparent\tcleo\n")
    done = kgcf("predict", run, "--head", "anna", "--relation", "grandparent", "--graph", tmp_path / "new.tsv")
    assert done.returncode == 0, done.stderr
    assert "cleo" in done.stdout


def test_evaluate_writes_its_protocol(run: Path) -> None:
    done = kgcf("evaluate", run, "--split", "valid", "--json")
    assert done.returncode == 0, done.stderr
    protocol = json.loads(done.stdout)["protocol"]
    assert (protocol["preset"], protocol["split"], protocol["training_seed"]) == ("nbfnet", "valid", 0)
    written = json.loads((run / "results.json").read_text())
    assert written["protocol"]["split"] == "test"


def test_evaluate_on_other_data_leaves_the_results_of_the_run(run: Path, tmp_path: Path) -> None:
    before = (run / "results.json").read_bytes()
    other = write_folder(dataset(seed=1), tmp_path / "other")
    done = kgcf("evaluate", run, "--graph", other, "--json", "--output", tmp_path / "other.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "other.json").read_text())["protocol"]["dataset"] == "other"
    assert (run / "results.json").read_bytes() == before


def test_complete_writes_a_file_and_estimates(run: Path, tmp_path: Path) -> None:
    done = kgcf("complete", run, "--relation", "grandparent", "--top", "5", "--output", tmp_path / "new.tsv")
    assert done.returncode == 0, done.stderr
    assert "questions (head, relation, ?), about" in done.stderr
    assert len((tmp_path / "new.tsv").read_text().splitlines()) == 6
    refused = kgcf("complete", run, "--output", tmp_path / "new.xlsx")
    assert refused.returncode == 1
    assert "must end in" in " ".join(refused.stderr.split())
