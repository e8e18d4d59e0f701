"""The embedded graph keeps its promises: readable, true where we looked, fairly split, attributed."""

import unicodedata
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kgcf.data import registry
from kgcf.data.dataset import Dataset
from kgcf.data.mirrors import find_mirrors
from kgcf.data.statistics import describe_graph

Facts = set[tuple[str, str, str]]


@pytest.fixture(scope="module")
def world() -> Dataset:
    return registry.load("world")


def facts_of(data: Dataset, split: str) -> Facts:
    rows = getattr(data, split).queries.tolist()
    entity, relation = data.entities.label, data.relations.label
    return {(entity(h), relation(r), entity(t)) for h, r, t in rows}


@pytest.fixture(scope="module")
def facts(world: Dataset) -> Facts:
    return facts_of(world, "train") | facts_of(world, "valid") | facts_of(world, "test")


def test_size(world: Dataset) -> None:
    total = len(world.graph) + len(world.valid) + len(world.test)
    assert 3_000 <= total <= 6_500
    assert len(world.valid) == pytest.approx(0.1 * total, rel=0.05)
    assert len(world.test) == pytest.approx(0.1 * total, rel=0.05)
    assert len(world.relations) >= 15


def test_no_fact_twice_and_every_name_is_clean(world: Dataset, facts: Facts) -> None:
    assert len(facts) == len(world.graph) + len(world.valid) + len(world.test)
    for label in (*world.entities.labels(), *world.relations.labels()):
        assert label == label.strip() != ""
        assert unicodedata.is_normalized("NFC", label)
        assert not any(unicodedata.category(sign).startswith("C") for sign in label)
    assert all(h != t for h, _, t in facts)


def test_every_entity_and_relation_is_in_one_connected_train_graph(world: Dataset) -> None:
    found = describe_graph(world.graph, "train", np.random.default_rng(0))
    assert found.connected_entities == len(world.entities)
    assert found.relations == len(world.relations)
    assert found.components == 1


def test_every_relation_is_held_out_in_proportion(world: Dataset) -> None:
    known = np.bincount(world.test.known.triples[:, 1])
    for split in (world.valid, world.test):
        assert np.abs(np.bincount(split.queries[:, 1], minlength=len(known)) / known - 0.1).max() < 0.03


def test_borders_are_symmetric_and_both_ways_in_one_split(world: Dataset, facts: Facts) -> None:
    for split in ("train", "valid", "test"):
        own = {(h, t) for h, r, t in facts_of(world, split) if r == "borders"}
        assert own
        assert own == {(t, h) for h, t in own}


def test_no_relation_mirrors_another(world: Dataset) -> None:
    kinds = {(world.relations.label(m.first), m.kind) for m in find_mirrors(world.test.known)}
    assert kinds == {("borders", "symmetric")}


@pytest.mark.parametrize(
    "fact",
    [
        "Portugal|speaks|Portuguese",
        "Portugal|borders|Spain",
        "Portugal|has capital|Lisbon",
        "Portugal|is in region|Southern Europe",
        "Southern Europe|is part of|Europe",
        "Portugal|uses currency|Euro",
        "Portuguese|belongs to family|Romance languages",
        "Romance languages|belongs to family|Indo-European languages",
        "Japan|drives on|the left",
        "Japan|has coast on|Sea of Japan",
        "Kazakhstan|has capital|Astana",
        "Kenya|is member of|African Union",
        "Greenland|is territory of|Denmark",
        "Estonia|was part of|Soviet Union",
        "Canadian Dollar|is a kind of|dollar",
        "Munich|is city in|Germany",
        "Munich|observes|Central European Time",
        "Central European Time|is at offset|UTC+01:00",
        "Russian|is written in|Cyrillic script",
        "Spain|has minority language|Catalan",
        "Adriatic Sea|is part of|Mediterranean Sea",
        "Botswana|borders|Zambia",
        "Bulgaria|uses currency|Euro",
    ],
)
def test_things_everybody_knows(fact: str, facts: Facts) -> None:
    assert tuple(fact.split("|")) in facts


@pytest.mark.parametrize(
    ("country", "neighbours"),
    [
        ("Austria", "Czechia Germany Hungary Italy Liechtenstein Slovakia Slovenia Switzerland"),
        ("Albania", "Greece Kosovo Montenegro North-Macedonia"),
        ("United States", "Canada Mexico"),
        ("Lesotho", "South-Africa"),
        ("Mongolia", "China Russia"),
        ("Uruguay", "Argentina Brazil"),
    ],
)
def test_neighbours(country: str, neighbours: str, facts: Facts) -> None:
    found = {t.replace(" ", "-") for h, r, t in facts if h == country and r == "borders"}
    assert found == set(neighbours.split())


def test_functional_relations_have_one_answer(facts: Facts) -> None:
    answers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for h, r, t in facts:
        answers[h, r].add(t)
    for relation in ("has capital", "is on continent", "is in region", "drives on", "is city in", "is at offset"):
        assert {len(found) for (_, r), found in answers.items() if r == relation} == {1}


def test_borders_stay_plausible(facts: Facts) -> None:
    count = sum(r == "borders" and h == "China" for h, r, t in facts)
    assert count == 16  # fourteen states, Hong Kong and Macao
    islands = {"Japan", "Iceland", "Cuba", "New Zealand", "Madagascar", "Australia"}
    assert not any(r == "borders" and h in islands for h, r, t in facts)


def test_sources_and_licences_ship_with_the_triples() -> None:
    folder = registry.get("world")[0][0]
    text = (Path(folder) / "ATTRIBUTION.txt").read_text(encoding="utf-8")
    for needed in ("GeoNames", "Creative Commons Attribution 4.0", "CLDR", "UNICODE LICENSE V3"):
        assert needed in text
