"""The document says what the files say, in the same bytes every time; and the command line from cells to document."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner, Result

from kgcf.cli import app
from kgcf.errors import KgcfError
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.document import write_document
from kgcf.reproduction.report.gathering import gather
from kgcf.reproduction.store import Store
from kgcf.reproduction.targets import (
    ABLATED,
    CONTROL,
    DEFAULT,
    PAPER,
    PATHS,
    PLAIN,
    TARGETS,
    TENTHS,
    WHOLE,
    WITHOUT,
    WITHOUT_CONTROL,
)


def reproduce(*given: str | Path) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, given)], catch_exceptions=False)


MACHINE = {"processor": "abacus", "cores": 1, "memory_gib": 1}


def pretended(cell: Cell, better: Mapping[str, int]) -> dict[str, Any]:
    """A result in which a variant's answers stand `better` places further up than 12."""
    ranks = np.maximum(1, 12 - better.get(cell.variant, 0) + np.arange(40) % 3).tolist()
    mrr = float(np.mean([1 / rank for rank in ranks]))
    metrics = {"mrr": mrr, "mr": 5.0, "hits@1": 0.1, "hits@3": 0.2, "hits@10": mrr, "amri": 0.5}
    relations = {f"r{i}": {"mrr": mrr * (1 + i / 10), "count": 4.0} for i in range(6)}
    return {
        "commit": "abc",
        "machine": MACHINE,
        "metrics": metrics,
        "times": {"training_seconds": 60.0},
        "protocol": {"passes": 80_000},
        "ranks": ranks,
        "per_relation": relations,
        "train_triples": {f"r{i}": 10**i for i in range(6)},
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Results of all trained cells at the default scale, invented."""
    made = Store(tmp_path_factory.mktemp("invented") / "cells")
    gains = {PATHS: 6, DEFAULT: 10, "NBFNet + T": 0, PAPER: -4, TENTHS: 2, "transe": 9, WHOLE: 3}
    for target in ("table1", "table3", "figure4", "ablations"):
        for cell in TARGETS[target]("default"):
            made.write(cell, pretended(cell, {**gains, CONTROL: 5}))
    inference = TARGETS["table4"]("default")[0]
    seconds = {name: [1.0 + place] * 5 for place, name in enumerate(inference.variant.split(","))}
    timed = {"seconds": seconds, "questions": 100, "test_questions": 1000, "protocol": "in one go"}
    made.write(inference, {"commit": "abc", "machine": MACHINE, **timed})
    return made


def test_the_document_says_what_the_files_say(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "docs" / "results.md"
    assert write_document(store, path)
    text = path.read_text()
    assert "**KGCF (default, paths alone) is better on umls, " in text
    assert "**KGCF (paper) is worse on umls, " in text
    assert "**NBFNet + T is not shown to differ on any graph**" in text
    said = " ".join(text.split())
    assert (
        "- umls: no, transe (0.263) is before KGCF (default, paths alone) (0.145); all seeds alike." in said
    )  # who is best in table 1
    assert "KGCF (default), with memory where it helps: 0.365 ± 0.000." in said  # no part of the paper's claim
    assert "- umls: no, with random labels they do better." in text  # the control of the ablations
    assert f"### {PATHS} against {PLAIN}" in text  # the pair that differs in nothing else
    assert f"| KGCF is better than NBFNet: {PAPER} against nbfnet (table 3) | worse on umls, " in text
    assert f"help our own model: {PATHS} against {PLAIN} (table 3) | better on umls, " in text
    assert "| the gain sits at rare relations (table 3) | no, at frequent ones: umls, " in text
    assert "| 1.20 times NBFNet's (the paper: 1.05) |" in text
    assert "- wn18rr (the others with 5 minutes): no, transe (0.263)" in said
    assert "wn18rr (transe; other models had 5 minutes)" in said.split("Table 1")[0]
    assert "family: 21 models had at most 5 minutes of training and one seed" in said
    wordnet, freebase = (said.split(f"### {graph}")[1] for graph in ("wn18rr", "fb15k-237"))
    for text in (wordnet, freebase):
        assert text.startswith(" Ours: 5 minutes for every model, on a CPU; *min* is what training took. nbfnet, ")
        assert f"nbfnet, {PAPER}, {PATHS}: 80,000 passes instead, the same for all variants" in text
    assert "KGCF takes 1.20 times as long as NBFNet (the paper: 1.05)" in text
    assert "| rgcn-distmult | 50.0 | 50.0 | 13 s |" in text  # five parts of a second, a tenth of the questions
    assert "| rotate |" in text
    assert "over 16 settings; one seed. Without counterfactual losses (α = β = 0, the same seed): 0.0" in said
    assert "0.553" in text  # printed by the paper
    assert "no, at frequent ones" in text  # gains grow with the frequency of the invented relations
    assert {p.name for p in path.parent.iterdir()} == {
        "results.md",
        "figure4-wn18rr.svg",
        "figure4-wn18rr_v1.svg",
        "figure4-wn18rr_v1-paper.svg",
        "gain-by-frequency.svg",
    }


def test_the_same_files_give_the_same_bytes(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "docs" / "results.md"
    write_document(store, path)
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    assert not write_document(store, path)
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before
    file = store.file(TARGETS["table3"]("default")[0])
    kept = file.rename(file.with_suffix(".away"))
    assert write_document(store, path)
    kept.rename(file)
    assert "257 of 258 cells" in path.read_text()


def test_cells_that_scales_share_are_those_of_the_smaller_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    shared = [cell for cell in TARGETS["table1"]("default") if cell in TARGETS["table1"]("full")]
    for cell in shared:
        store.write(cell, pretended(cell, {}))
    found = gather(store, "table1")
    assert found is not None
    assert (found.scale, len(found.found)) == ("default", len(shared))
    own = next(cell for cell in TARGETS["table1"]("full") if cell not in shared)
    store.write(own, pretended(own, {}))
    again = gather(store, "table1")
    assert again is not None
    assert again.scale == "full"


def test_numbers_of_the_heat_map_can_be_read_and_open_cells_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, path: drawn.append(figure))
    pictures.draw_weights("tiny", "any", {(0.1, 0.1): 0.2, (0.1, 1.0): 0.9, (1.0, 0.1): 0.3}, tmp_path / "map.svg")
    colours = {text.get_text(): text.get_color() for text in drawn[0].axes[0].texts}
    assert colours == {"0.200": "white", "0.900": "black", "0.300": "white", "open": pictures._GREY}


def test_the_weights_that_validation_prefers_are_said_beside_those_of_the_preset(tmp_path: Path) -> None:
    """Of the paper's model; test prefers others here."""
    grid = [cell for cell in TARGETS["figure4"]("default") if cell.variant == PAPER]
    assert len(grid) == 16
    store = Store(tmp_path / "cells")
    for place, cell in enumerate(grid):
        metrics = {"mrr": 0.5, "mr": 5.0, "hits@10": 0.9 - place / 100}
        store.write(cell, {**pretended(cell, {}), "metrics": metrics, "validation": [0.3, 0.4 + place / 100]})
    write_document(store, tmp_path / "results.md")
    said = " ".join((tmp_path / "results.md").read_text().split())
    assert "wn18rr:v1, KGCF (paper): test H@10 from 0.7500 (α = 1, β = 1) to 0.9000 (α = 0.001, β = 0.001)" in said
    assert "Validation prefers α = 1, β = 1 (MRR 0.5500; the least is 0.4000), which has test H@10 0.7500." in said
    assert "Preset `paper` has α = 1, β = 0.001." in said
    assert "Without counterfactual losses" not in said  # which the ablations know of another model


def written(cells: dict[Cell, list[int]], folder: Path, **more: Any) -> str:
    """The document of these cells' ranks alone, on one line."""
    store = Store(folder / "cells")
    for cell, ranks in cells.items():
        metrics = {"mrr": float(np.mean(1 / np.array(ranks))), "mr": 5.0, "hits@10": 0.5}
        store.write(cell, {**pretended(cell, {}), "ranks": ranks, "metrics": metrics, **more.get(cell.variant, {})})
    write_document(store, folder / "results.md")
    return " ".join((folder / "results.md").read_text().split())


def table3_cells(variant: str) -> list[Cell]:
    return [cell for cell in TARGETS["table3"]("default") if cell.dataset == "umls" and cell.variant == variant]


def test_what_only_the_questions_say_is_not_settled(tmp_path: Path) -> None:
    """Two of three trainings are worse, one is better: over questions that looks sure, over trainings it is not."""
    base, paper = table3_cells("nbfnet")[:3], table3_cells(PAPER)[:3]
    cells = {**dict.fromkeys(base, [2] * 400)}
    cells |= dict(zip(paper, ([1] * 90 + [2] * 310, [4] * 250 + [2] * 150, [4] * 260 + [2] * 140), strict=True))
    text = written(cells, tmp_path)
    assert "umls: no, nbfnet (0.500) is before KGCF (paper) (0.431)" in text
    assert "over seeds p 0.527" in text  # Welch's test where one of the two has no spread
    assert "**KGCF (paper) is not shown to differ on any graph**" in text
    assert "Over questions alone it is worse on umls: so with these seeds, not settled for others." in text
    assert "1 of 9 graphs so far" in text
    assert f"nor of “NBFNet + T” and “{TENTHS}” and “{PATHS}” and “{PLAIN}”." in text  # what is asked for and not there


def test_one_seed_settles_nothing_and_says_so(tmp_path: Path) -> None:
    cells = {table3_cells("nbfnet")[0]: [4] * 400, table3_cells(PAPER)[0]: [1] * 200 + [4] * 200}
    text = written(cells, tmp_path)
    assert "**KGCF (paper) is not shown to differ on any graph**" in text
    assert "it is better on umls" in text
    assert "| not shown on any graph; not settled: better on umls | 1 of 9 graphs so far, seeds: 1;" in text
    assert "| not begun | |" in text
    assert "One seed each so far" in text


def test_table3_counts_answers_among_the_first_ten_beside_mrr(tmp_path: Path) -> None:
    ranks = {table3_cells("nbfnet")[0]: [20] * 30 + [5] * 10, table3_cells(PATHS)[0]: [5] * 30 + [5] * 10}
    text = written(ranks, tmp_path).split(f"### {PATHS} against nbfnet")[1]
    assert "| ΔH@10 | p H@10 |" in text
    assert "| +0.7500 | < 0.001 |" in text
    effect = 0.15 * 0.75 / (0.15 * (0.75 * 0.25 * 40 / 39) ** 0.5)
    assert f"| {effect:+.2f} (+" in text


def test_what_else_differs_between_two_variants_is_said(tmp_path: Path) -> None:
    cells = {table3_cells("nbfnet")[0]: [4] * 9, table3_cells(PATHS)[0]: [1] * 9}
    settings = {
        "nbfnet": {"configuration": {"encoder": {"context": "none"}, "objective": {"alpha": 0.0}}},
        PATHS: {"configuration": {"encoder": {"context": "unreached"}, "objective": {"alpha": 0.01}}},
    }
    text = written(cells, tmp_path, **settings)
    assert "What differs: encoder.context (none → unreached), objective.alpha (0.0 → 0.01)." in text
    assert "**Not counterfactual among these: encoder.context**" in text


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        (
            {"umls": 0.02, "kinships": 0.0202},
            "asks for the counterfactual parts of preset `default`**: so it keeps them; on test ",
        ),
        (
            {"umls": -0.02, "kinships": -0.0202},
            "speaks against the counterfactual parts of preset `default`**: so it sh",
        ),
        ({"umls": 0.02, "kinships": -0.02}, "does not decide about the counterfactual parts of preset `default`**"),
        ({"umls": 0.02}, "What preset `default` should be cannot be told yet: it takes two graphs."),
    ],
)
def test_what_default_should_be_is_for_validation_to_say(gains: dict[str, float], said: str, tmp_path: Path) -> None:
    """Test says the opposite here, and is not asked."""
    store = Store(tmp_path / "cells")
    for cell in TARGETS["table3"]("default"):
        if cell.dataset in gains and cell.seed < 2 and cell.variant in (PATHS, PLAIN):
            best = 0.5 + cell.seed / 10 + (gains[cell.dataset] if cell.variant == PATHS else 0.0)
            ranks = [1] * 9 if (cell.variant == PATHS) == (gains[cell.dataset] < 0) else [4] * 9
            store.write(cell, {**pretended(cell, {}), "ranks": ranks, "validation": [0.1, best, None, best - 0.1]})
    write_document(store, tmp_path / "results.md")
    text = " ".join((tmp_path / "results.md").read_text().split())
    assert said in text
    assert "| umls | 0.5" in text.split("What does validation say?")[1]
    mean = sum(gains.values()) / len(gains)
    assert f"- {PATHS} against {PLAIN}: {mean:+.4f} (" in text


def test_cells_of_other_questions_are_not_paired(tmp_path: Path) -> None:
    with pytest.raises(KgcfError, match="Cells of umls have 8 and 9 questions and cannot be paired"):
        written({table3_cells("nbfnet")[0]: [4] * 9, table3_cells(PATHS)[0]: [1] * 8}, tmp_path)


def ablation_cells(ranks: Mapping[str, list[int]]) -> dict[Cell, list[int]]:
    return {
        cell: ranks[cell.variant]
        for cell in TARGETS["ablations"]("default")
        if cell.dataset == ABLATED[0] and cell.variant in ranks
    }


@pytest.mark.parametrize(
    ("whole", "control", "without_control", "said"),
    [
        ([2] * 40, [4] * 40, None, "no: they do harm. With true labels they add -0.5000"),
        ([2] * 40, [4] * 40, [2] * 40, "no: they do harm. With true labels they add -0.5000"),
        ([1] * 40, [2] * 40, [2] * 40, "not shown"),  # they add nothing, true or not
    ],
)
def test_losses_that_do_harm_are_not_excused_by_a_control_that_does_more(
    whole: list[int], control: list[int], without_control: list[int] | None, said: str, tmp_path: Path
) -> None:
    """Between the whole and its control there may be anything: what counts is what the losses add to either."""
    ranks = {WITHOUT: [1] * 40, WHOLE: whole, CONTROL: control}
    if without_control is not None:
        ranks[WITHOUT_CONTROL] = without_control
    text = written(ablation_cells(ranks), tmp_path)
    assert f"- {ABLATED[0]}: {said}" in text
    assert (
        f"Does any variant of the counterfactual losses beat “{WITHOUT}”?** - {ABLATED[0]}: no variant is shown to"
        in text
    )
    assert (f"to compare with random labels it needs “{WITHOUT_CONTROL}”" in text) == (without_control is None)


def test_losses_that_help_with_true_labels_alone_are_said_to(tmp_path: Path) -> None:
    ranks = {WITHOUT: [2] * 40, WHOLE: [1] * 30 + [2] * 10, CONTROL: [4] * 40, WITHOUT_CONTROL: [4] * 40}
    text = written(ablation_cells(ranks), tmp_path)
    assert f"- {ABLATED[0]}: yes. With true labels they add +0.3750" in text
    assert "no counterfactual losses | 0.5000 ± 0.0000 (-0.3750*) |" in text


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ([10, 11, 12], "yes, disc frobenius; 0 are worse"),
        (
            [10, -4, 12],
            "no variant is shown to; disc frobenius by these seeds' questions, not settled for others; 0 are",
        ),
        ([10], "no variant is shown to; disc frobenius by these seeds' questions, not settled for others; 0 are"),
    ],
)
def test_a_loss_helps_only_where_questions_and_seeds_agree(gains: list[int], said: str, tmp_path: Path) -> None:
    frobenius = next(c for c in TARGETS["ablations"]("default") if c.variant == "disc frobenius")
    without = [c for c in TARGETS["ablations"]("default") if c.dataset == frobenius.dataset and c.variant == WITHOUT]
    cells = {cell: [20] * 40 for cell in without[: len(gains)]}
    cells |= {replace(frobenius, seed=seed): [20 - gain] * 40 for seed, gain in enumerate(gains)}
    text = written(cells, tmp_path) if len(gains) == 1 else full(cells, tmp_path)
    assert f"- {frobenius.dataset}: {said}" in text


def full(cells: dict[Cell, list[int]], folder: Path) -> str:
    """Their document at the full scale, which has every seed of every variant."""
    only_full = next(c for c in TARGETS["ablations"]("full") if c.seed == 4 and c.variant == CONTROL)
    return written(cells | {only_full: [20] * 40}, folder)


def test_variants_are_ordered_on_validation_by_the_seeds_that_all_have(tmp_path: Path) -> None:
    """The whole is better with the seed that both have, and worse by the means of all."""
    store = Store(tmp_path / "cells")
    best = {(WHOLE, 0): 0.6, (WITHOUT, 0): 0.5, (WITHOUT, 1): 0.9}
    for cell in TARGETS["ablations"]("default"):
        if cell.dataset == ABLATED[0] and (found := best.get((cell.variant, cell.seed))) is not None:
            store.write(cell, {**pretended(cell, {}), "validation": [found]})
    write_document(store, tmp_path / "results.md")
    text = " ".join((tmp_path / "results.md").read_text().split())
    assert f"of 2 variants, by seed 0, 1. {WHOLE} (0.6000), 2. {WITHOUT} (0.5000)." in text


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ({"nbfnet": (2, 2, 2), PATHS: (4, 4, 4)}, "no on umls (nbfnet; "),
        ({"nbfnet": (4, 4, 4), PATHS: (2, 2, 2)}, "yes on umls (nbfnet; "),
        ({"nbfnet": (2, 4, 3), PATHS: (3, 3, 4)}, "not told apart from another on umls (nbfnet; "),
        ({"nbfnet": (2,), PATHS: (4,)}, "not told apart from another on umls (nbfnet; "),
        ({PATHS: (4, 4, 4)}, "not told apart from another on umls (alone; "),
    ],
)
def test_who_is_best_needs_seeds_that_say_so(ranks: dict[str, tuple[int, ...]], said: str, tmp_path: Path) -> None:
    cells = {
        cell: [ranks[cell.variant][cell.seed]] * 9
        for cell in TARGETS["table1"]("default")
        if cell.dataset == "umls" and cell.seed < len(ranks.get(cell.variant, ()))
    }
    assert f"(table 1) | {said}" in written(cells, tmp_path)


def test_an_open_target_says_how_long_it_will_take_by_what_is_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, *rest = [cell for cell in TARGETS["table3"]("default") if cell.dataset == "umls"]
    store.write(first, {**pretended(first, {}), "times": {"training_seconds": 119.0, "evaluation_seconds": 1.0}})
    (tmp_path / "broken.json").write_text("{")
    listed = reproduce("table3", "--list", "--only", "train-umls,train-nell", "--results", tmp_path)
    another_seed = next(cell for cell in rest if cell.variant == first.variant)
    assert f"open      {another_seed.name}  nbfnet  about 2 min" in listed.stdout
    assert "59 of 60 cells to compute. About 58 min of one process for 29 cells" in listed.stderr
    assert "Nothing is known of 30 cells more (nell:v1)" in listed.stderr


def test_without_results_the_document_stays_as_it_is(tmp_path: Path) -> None:
    document = tmp_path / "results.md"
    document.write_text("kept")
    (tmp_path / "a file").write_text("")
    for results in ("none", "a file"):
        with pytest.raises(KgcfError, match="holds no finished cell"):
            reproduce("report", "--results", tmp_path / results, "--document", document)
    assert document.read_text() == "kept"


def test_report_takes_no_choice_of_cells_and_is_among_the_targets(tmp_path: Path) -> None:
    with pytest.raises(KgcfError, match="--results and --document alone"):
        reproduce("report", "--only", "umls", "--results", tmp_path)
    with pytest.raises(KgcfError, match="report"):
        reproduce("nonsense", "--results", tmp_path)


def test_from_cells_to_the_document_as_people_type_it(tmp_path: Path) -> None:
    results = ("--results", tmp_path / "cells")
    listed = reproduce("table1", "--quick", "--list", *results)
    assert listed.stdout.count("open      train-umls-") == 24
    assert "24 of 24 cells to compute. How long 24 cells will take cannot be told" in listed.stderr
    only = ("--only", "world", "--quick", *results)
    done = reproduce("figure2", *only)
    assert done.exit_code == 0
    assert "1 cells computed, 0 were there" in done.stdout
    again = reproduce("figure2", *only)
    assert "0 cells computed, 1 were there" in again.stdout
    written = reproduce("report", *results, "--document", tmp_path / "docs" / "results.md")
    assert written.exit_code == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "relations have half of the train triples" in text
    assert "1 of 2 cells (quick look" in text
    assert (tmp_path / "docs" / "figure2-world.svg").is_file()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("tabel1",), "no target called 'tabel1'"),
        (("table1", "--quick", "--full"), "Give --quick or --full, not both"),
        (("table1", "--only", "nothing-like-it"), "No cell's name or variant contains 'nothing-like-it'"),
        (("table1", "--part", "3/2"), "--part cannot be '3/2'"),
    ],
)
def test_mistakes_are_sentences(given: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(KgcfError, match=said):
        reproduce(*given, "--results", tmp_path)
