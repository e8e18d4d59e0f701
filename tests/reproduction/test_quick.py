"""`kgcf reproduce TARGET --quick`: a small part of it always, all of it where there are minutes."""

from pathlib import Path

import pytest

from kgcf.reproduction.standing import standing_of
from kgcf.reproduction.store import Store
from kgcf.reproduction.targets import TARGETS, cells_of
from tests.reproduction.test_report import reproduce

pytestmark = pytest.mark.benchmark


def test_a_few_cells_of_two_targets(tmp_path: Path) -> None:
    results = ("--quick", "--results", tmp_path / "cells")
    for target, only in (("table1", "umls-frequency"), ("table2", "world")):
        done = reproduce(target, "--only", only, *results)
        assert done.exit_code == 0, done.output
    assert reproduce("report", "--results", tmp_path / "cells", "--document", tmp_path / "results.md").exit_code == 0
    text = (tmp_path / "results.md").read_text()
    assert "| frequency | 0.661 |" in text
    assert "## Table 2" in text
    assert "is it a fact?" in text


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_whole_targets(target: str, tmp_path: Path) -> None:
    done = reproduce(target, "--quick", "--results", tmp_path / "cells")
    assert done.exit_code == 0, done.output
    store = Store(tmp_path / "cells")
    assert all(standing_of(store, cell).word == "done" for cell in cells_of(target, "quick"))
    assert not list((tmp_path / "cells" / "unfinished").iterdir())
    reproduce("report", "--results", tmp_path / "cells", "--document", tmp_path / "results.md")
    assert f"kgcf reproduce {target} --quick" in " ".join((tmp_path / "results.md").read_text().split())
