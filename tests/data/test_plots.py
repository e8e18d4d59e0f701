"""The picture of relations: what is drawn, to which file, the same every time."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import BarContainer

from kgcf.data import registry
from kgcf.data.dataset import Dataset, transductive
from kgcf.data.plots import NAMED_RELATIONS, draw_relations, relation_figure
from kgcf.data.statistics import DatasetFacts, describe
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import SettingsError


def facts_of(data: Dataset) -> DatasetFacts:
    return describe(data, np.random.default_rng(0))


def many_relations(count: int) -> DatasetFacts:
    """Relation r has r + 1 train triples; the last two have no test triple."""
    train = np.array([(i, r, i + 1) for r in range(count) for i in range(r + 1)], np.int32)
    test = np.array([(0, r, 3) for r in range(count - 2)], np.int32)
    names = Vocabulary([f"relation {r}" for r in range(count)])
    parts = (train, np.zeros((0, 3), np.int32), test)
    return facts_of(transductive("d", Vocabulary.numbered(count + 5), names, parts))


def test_few_relations_are_bars_with_names_in_order() -> None:
    axes = relation_figure(facts_of(registry.load("world"))).axes[0]
    train, test = (c for c in axes.containers if isinstance(c, BarContainer))
    widths = [bar.get_width() for bar in train]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(1)
    assert sum(bar.get_width() for bar in test) == pytest.approx(1)
    assert axes.get_yticklabels()[0].get_text() == "observes"


def test_many_relations_are_drawn_by_rank() -> None:
    count = NAMED_RELATIONS + 5
    axes = relation_figure(many_relations(count)).axes[0]
    heights = [bar.get_height() for c in axes.containers if isinstance(c, BarContainer) for bar in c]
    assert len(heights) == count
    assert heights == sorted(heights, reverse=True)
    assert axes.get_yscale() == "log"
    ranks = np.asarray(axes.lines[0].get_xdata()).tolist()
    assert ranks == list(range(3, count + 1))  # the two largest relations have no test triple
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][1].endswith("2 relations have none")


@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".SVG", b"<?xml")])
def test_files_are_pictures_and_reproducible(ending: str, start: bytes, tmp_path: Path) -> None:
    facts = many_relations(4)
    draw_relations(facts, tmp_path / f"one{ending}")
    draw_relations(facts, tmp_path / "new" / f"two{ending}")
    content = (tmp_path / f"one{ending}").read_bytes()
    assert content.startswith(start)
    assert content == (tmp_path / "new" / f"two{ending}").read_bytes()


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"end the name in \.png or \.svg"):
        draw_relations(many_relations(3), tmp_path / "picture.pdf")
    assert list(tmp_path.iterdir()) == []
