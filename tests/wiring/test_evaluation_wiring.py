"""The numbers of a run against an independent ranking: raw files, one question at a time, loops over entities."""

import json
from pathlib import Path

import numpy as np
import pytest

import kgcf
from tests.wiring.conftest import Town
from tests.wiring.raw import RawFiles, Triple, reciprocal_ranks


def truths_of_validation(town: Town) -> set[Triple]:
    """What filters validation, as labels: train and valid at least, and nothing that no file has."""
    data = town.run.data
    known = {
        (data.entities.label(h), data.relations.label(r), data.entities.label(t))
        for h, r, t in data.valid.known.triples.tolist()
    }
    assert {*town.raw.train, *town.raw.valid} <= known <= town.raw.all
    return known


def test_evaluation_observes_train_filters_all_truths_and_shares_ties(town: Town) -> None:
    raw = town.raw
    found = town.run.evaluate("test")
    wanted = reciprocal_ranks(town.train, raw.test, raw.all)
    assert found["mrr"] == pytest.approx(np.mean(wanted), rel=1e-9)
    assert found["hits@10"] == np.mean([value >= 1 / 10 for value in wanted])
    assert 1 / found.ranks.realistic == pytest.approx([*wanted[::2], *wanted[1::2]], rel=1e-9)  # tails, then heads
    assert found.metrics["tail"]["realistic"]["inverse_harmonic_mean_rank"] == pytest.approx(np.mean(wanted[::2]))
    for wrong in (
        reciprocal_ranks(town.everything, raw.test, raw.all),
        reciprocal_ranks(town.train, raw.test, set(raw.test)),
        reciprocal_ranks(town.train, raw.test, raw.all, "optimistic"),
    ):
        assert np.mean(wrong) != pytest.approx(np.mean(wanted), rel=1e-4)  # so that the test can tell them apart


def test_validation_after_training_is_evaluation_of_the_valid_split(town: Town) -> None:
    wanted = np.mean(reciprocal_ranks(town.train, town.raw.valid, truths_of_validation(town)))
    assert town.run.evaluate("valid")["mrr"] == pytest.approx(wanted, rel=1e-9)


def test_validation_during_training_observes_train_and_shares_ties(town: Town) -> None:
    truths = truths_of_validation(town)
    history = town.run.evaluate("test").protocol["training"]
    wanted = np.mean(reciprocal_ranks(town.train, town.raw.valid, truths))
    assert history["best_validation_mrr"] == pytest.approx(wanted, rel=1e-9)
    assert history["best_validation_mrr"] == max(epoch["validation_mrr"] for epoch in history["epochs"])
    for wrong in (
        reciprocal_ranks(town.everything, town.raw.valid, truths),
        reciprocal_ranks(town.train, town.raw.valid, set(town.raw.valid)),
        reciprocal_ranks(town.train, town.raw.valid, truths, "optimistic"),
    ):
        assert np.mean(wrong) != pytest.approx(wanted, rel=1e-4)


def test_a_limit_draws_triples_with_the_seed(town: Town) -> None:
    every = reciprocal_ranks(town.train, town.raw.test, town.raw.all)
    by_triple = {
        triple: every[2 * place : 2 * place + 2] for place, triple in enumerate(town.raw.test)
    }  # tail and head
    seen = set()
    for seed in range(4):
        found = town.run.evaluate("test", limit=3, seed=seed)
        data = town.run.data
        drawn = [
            (data.entities.label(h), data.relations.label(r), data.entities.label(t))
            for h, r, t in found.ranks.triples.tolist()
        ]
        assert len(drawn) == 3
        assert found["mrr"] == pytest.approx(np.mean([by_triple[triple] for triple in drawn]), rel=1e-9)
        assert found.ranks.triples.tolist() == town.run.evaluate("test", limit=3, seed=seed).ranks.triples.tolist()
        seen.add(tuple(drawn))
    assert len(seen) > 1


def test_the_protocol_says_what_was_done(town: Town) -> None:
    protocol = town.run.evaluate("test", seed=7).protocol
    assert (protocol["preset"], protocol["split"], protocol["seed"]) == ("default", "test", 7)
    assert (protocol["epochs"], protocol["training_seed"], protocol["device"]) == (3, 0, "cpu")
    assert "default" in protocol["model"]
    assert protocol["triples"] == len(town.raw.test)
    assert len(protocol["training"]["epochs"]) == 3


def test_progress_counts_every_query(town: Town) -> None:
    done: list[int] = []
    town.run.evaluate("test", advance=done.append)
    assert sum(done) == 2 * len(town.raw.test)


def test_only_saving_writes_results(town: Town) -> None:
    file = town.run.folder.file("results.json")
    assert not file.exists()
    town.run.evaluate("test")
    assert not file.exists()
    found = town.run.evaluate("test", save=True)
    assert json.loads(file.read_text())["mrr"] == found["mrr"]
    kept = json.loads(town.run.folder.file("calibration.json").read_text())
    assert kept["test"] is not None
    file.unlink()


def test_other_data_with_relations_in_another_order(town: Town, tmp_path: Path) -> None:
    """The same triples under a new order of relations and entities give the same ranks."""
    raw = town.raw
    for name in ("train", "valid", "test"):
        rows = [f"{h}\t{r}\t{t}\n" for h, r, t in reversed(getattr(raw, name))]
        (tmp_path / f"{name}.txt").write_text("".join(rows))
    other = kgcf.read(tmp_path)
    assert other.relations.labels() != town.run.data.relations.labels()
    for split in ("train", "valid", "test"):
        assert town.run.evaluate(split, data=other)["mrr"] == pytest.approx(town.run.evaluate(split)["mrr"], rel=1e-6)
    assert RawFiles(tmp_path).all == raw.all
