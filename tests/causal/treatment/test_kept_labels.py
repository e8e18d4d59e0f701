"""A run whose treatment is a label file keeps the labels: the file may go, the run may move."""

import shutil
from pathlib import Path

import pytest

from kgcf.data.source import read
from kgcf.errors import DataError
from kgcf.pipeline import fit, open_run
from kgcf.prediction.observed_graph import with_paths
from kgcf.runs.run import Run
from tests.training.tiny import TINY, dataset, write_folder

SMALL = (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=1", "training.epochs=1")
NEW = [("anna", "parent", "ben"), ("ben", "parent", "cleo"), ("cleo", "friend", "anna")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("labels")
    labels = folder / "mine.csv"
    rows = [f"e{i},{'old' if i < 20 else 'young'}" for i in range(40)] + ["anna,old", "ben,old", "cleo,young"]
    labels.write_text("entity,label\n" + "\n".join(rows) + "\n")
    data = read(write_folder(dataset(), folder / "tiny"))
    changes = (*SMALL, "treatment.method=file", f"treatment.path={labels}", "training.remove=pair")
    return fit(data, folder / "run", changes=changes), labels


def test_a_run_needs_its_label_file_no_more(trained: tuple[Run, Path], tmp_path: Path) -> None:
    run, labels = trained
    question = [("e0", "parent", "e5"), ("e3", "friend", "e29")]
    before, mrr = run.score(question).tolist(), run.evaluate("test")["mrr"]
    hidden = labels.rename(labels.with_suffix(".gone"))
    moved = Path(shutil.copytree(run.folder.path, tmp_path / "elsewhere"))
    kept = run.folder.path.rename(run.folder.path.with_name("gone"))
    try:
        opened = open_run(moved)
        assert opened.score(question).tolist() == before
        assert opened.evaluate("test")["mrr"] == mrr
        triple = next(t for t in opened.data.graph.triples.tolist() if t[0] != t[2])
        names = opened.data.entities, opened.data.relations, opened.data.entities
        told = opened.explain(*(v.label(i) for v, i in zip(names, triple, strict=True)))
        assert told.counterfactual is not None
        new = with_paths(opened.observe(NEW))
        assert new.treatment is not None
        ids = [new.entities.id(name, "entity") for name in ("anna", "ben", "cleo")]
        treated = new.treatment.treated([ids[0], ids[0]], [0, 0], [ids[1:], ids[1:]])
        assert treated.tolist() == [[True, False]] * 2
        with pytest.raises(DataError, match="gives no entity of the graph a label"):
            opened.observe([("x", "parent", "y")])
    finally:
        kept.rename(run.folder.path)
        hidden.rename(labels)


def test_a_damaged_copy_is_refused(trained: tuple[Run, Path], tmp_path: Path) -> None:
    moved = Path(shutil.copytree(trained[0].folder.path, tmp_path / "elsewhere"))
    (moved / "treatment_labels.csv").write_text("entity,label\ne0,old\n")
    with pytest.raises(Exception, match=r"treatment_labels.csv is damaged"):
        open_run(moved)


def test_a_label_file_that_cannot_be_used_leaves_no_folder(trained: tuple[Run, Path], tmp_path: Path) -> None:
    changes = (*SMALL, "treatment.method=file", f"treatment.path={tmp_path / 'absent.tsv'}")
    with pytest.raises(DataError, match="No such file"):
        fit(trained[0].data, tmp_path / "run", changes=changes)
    assert not (tmp_path / "run").exists()
