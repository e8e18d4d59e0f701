import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from kgcf.errors import SettingsError
from kgcf.explanation.explanation import Explanation, Named
from kgcf.explanation.page import render_page, write_page
from kgcf.explanation.plots import draw_paths, place_entities
from kgcf.figure_files import drawable

from .test_explainer import people

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: the page is not drawn")


def browse(page: Path, *options: str) -> str:
    """Open a page in headless Chromium and let its scripts run."""
    assert BROWSER is not None
    profile = page.parent / "profile"
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1300,1500",
        f"--user-data-dir={profile}",
    ]
    command += ["--virtual-time-budget=5000", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def drawn_in(document: str) -> dict[str, Any]:
    found = re.search(r'data-drawn="([^"]*)"', document)
    assert found is not None, "the script of the page did not finish"
    result: dict[str, Any] = json.loads(html.unescape(found.group(1)))
    return result


def expected_paths(plain: dict[str, Any]) -> list[list[list[str]]]:
    """The triples of every path of the JSON, each in its own direction."""

    def triple(edge: dict[str, Any]) -> list[str]:
        ends = (edge["tail"], edge["head"]) if edge["inverse"] else (edge["head"], edge["tail"])
        return [ends[0]["label"], edge["relation"]["label"], ends[1]["label"]]

    return [[triple(edge) for edge in path["edges"]] for path in plain["paths"]]


@needs_browser
def test_the_browser_draws_the_paths_of_the_json(tmp_path: Path) -> None:
    explanation = people().explain("Ann", "likes", "Cyd", top=6)
    plain = json.loads(json.dumps(explanation.to_json()))
    page = tmp_path / "page.html"
    write_page(explanation, page)
    document = browse(page, "--dump-dom")
    drawn = drawn_in(document)
    assert len(drawn["paths"]) > 2
    assert drawn["paths"] == expected_paths(plain)
    assert set(drawn["entities"]) == {end for path in drawn["paths"] for head, _, tail in path for end in (head, tail)}
    assert drawn["visible"]
    assert drawn["inside"]
    assert document.count("<canvas") >= 1


@needs_browser
def test_the_canvas_is_not_empty(tmp_path: Path) -> None:
    inked = []
    for name, found in (
        ("paths", people().explain("Ann", "likes", "Cyd")),
        ("none", people().explain("Ann", "likes", "Hal")),
    ):
        write_page(found, tmp_path / f"{name}.html")
        browse(tmp_path / f"{name}.html", f"--screenshot={tmp_path / name}.png")
        pixels = matplotlib.image.imread(tmp_path / f"{name}.png")[160:560, 60:1200, :3]
        inked.append((np.ptp(pixels, axis=2) > 0.3).mean())  # coloured: the lines of the paths
    assert inked[0] > 0.001
    assert inked[1] == 0


@needs_browser
def test_names_that_look_like_code_are_names(tmp_path: Path) -> None:
    explanation = people().explain("Ann", "likes", "Cyd")
    evil = Named("e0", "</script><script>document.title='caught'</script> & \"{{library}}\"")
    paths = tuple(
        replace(path, edges=(replace(path.edges[0], head=evil), *path.edges[1:])) for path in explanation.paths
    )
    page = tmp_path / "page.html"
    write_page(replace(explanation, head=evil, paths=paths), page)
    document = browse(page, "--dump-dom")
    assert len(drawn_in(document)["paths"]) == len(explanation.paths)
    assert "<title>caught" not in document


def test_the_page_needs_no_other_file() -> None:
    page = render_page(people().explain("Ann", "likes", "Cyd"))
    assert not re.search(r"<(script|img|link|iframe)[^>]*(src|href)=", page)
    assert "{{" not in page.split("<script>", maxsplit=1)[0]
    assert 'id="explanation"' in page


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: people().explain("Ann", "likes", "Cyd"), "Having the same role changes the probability"),
        (lambda: people(treatment=False).explain("Ann", "likes", "Cyd"), "This model has no treatment"),
        (lambda: people().explain("Ann", "likes", "Hal"), "There is no path to remove."),
        (lambda: people().explain("Ann", "likes", "Ann"), "the same entity"),
    ],
)
def test_every_panel_says_what_it_knows(build: Callable[[], Explanation], said: str) -> None:
    explanation = build()
    page = render_page(explanation)
    assert said in page
    assert f"probability {explanation.probability:.3f}" in page
    assert page.count("data-removed=") == len(explanation.deletion)


def table_rows(page: str, name: str) -> list[list[str]]:
    """The texts of the cells of a table, row by row."""
    body = page.partition(f'<table id="{name}">')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    return [[html.unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows]


def test_probabilities_stand_with_the_triple_that_they_belong_to() -> None:
    found = people().explain("Ann", "likes", "Cyd")
    evidence = found.counterfactual
    assert evidence is not None
    pair = evidence.substitute
    assert pair is not None
    by_treatment = {0: evidence.untreated_probability, 1: evidence.treated_probability}
    own, page = int(evidence.factual_treatment), render_page(found)
    assert "<caption>The model on Ann —likes→ Cyd</caption>" in page
    assert table_rows(page, "treatments") == [
        ["as it is", str(own), f"{by_treatment[own]:.3f}", ""],
        ["under the other treatment", str(1 - own), f"{by_treatment[1 - own]:.3f}", ""],
    ]
    assert by_treatment[own] != pytest.approx(by_treatment[1 - own], abs=1e-3)
    triple = f"{pair.head.name} —likes→ {pair.tail.name}"
    known = "yes" if pair.known else "no"
    assert table_rows(page, "other-pair") == [[triple, str(1 - own), f"{pair.distance:.3f}", known]]
    assert f"Under the other treatment Ann —likes→ Cyd would have probability {by_treatment[1 - own]:.3f}" in page


def test_without_another_pair_the_treatments_still_stand() -> None:
    found = people().explain("Ann", "likes", "Cyd")
    assert found.counterfactual is not None
    alone = replace(
        found.counterfactual, substitute=None, counterfactual_treatment=found.counterfactual.factual_treatment
    )
    page = render_page(replace(found, counterfactual=alone))
    assert len(table_rows(page, "treatments")) == 2
    assert "other-pair" not in page.split("</main>", maxsplit=1)[0]


def test_labels_stand_beside_names() -> None:
    page = render_page(people().explain("Ann", "likes", "Cyd"))
    assert '<h1>Ann <span class="label">e0</span> <span class="arrow">—likes→</span> Cyd <span class="label">e2' in page


@needs_browser
def test_namesakes_are_told_apart_on_the_canvas(tmp_path: Path) -> None:
    explanation = people().explain("Ann", "likes", "Cyd")
    twin = Named("e0", "Ann\u202e", ambiguous=True)
    paths = tuple(
        replace(path, edges=(replace(path.edges[0], head=twin), *path.edges[1:])) for path in explanation.paths
    )
    page = tmp_path / "page.html"
    write_page(replace(explanation, head=twin, paths=paths), page)
    assert drawn_in(browse(page, "--dump-dom"))["names"][0] == "Ann\\u202e (e0)"


def test_picture(tmp_path: Path) -> None:
    sizes = {}
    for tail in ("Cyd", "Hal"):
        path = tmp_path / f"{tail}.png"
        draw_paths(people().explain("Ann", "likes", tail), path)
        sizes[tail] = (np.ptp(matplotlib.image.imread(path)[..., :3], axis=2) > 0.3).sum()
    assert sizes["Cyd"] > 1000
    assert sizes["Hal"] == 0
    with pytest.raises(SettingsError, match=".png"):
        draw_paths(people().explain("Ann", "likes", "Cyd"), tmp_path / "paths.pdf")


def test_names_in_pictures_are_inert_and_short() -> None:
    assert drawable("bell\x07 $x$", math=False) == r"bell\x07 $x$"
    assert drawable("bell\x07 $x$") == r"bell\x07 \$x\$"
    assert (drawable("abcdef", 4), drawable("abcdef", 4, keep="end")) == ("abc…", "…def")


def test_places_of_entities_differ() -> None:
    found = people().explain("Ann", "likes", "Dan", top=30)
    places = place_entities(found)
    assert len(set(places.values())) == len(places) == 6
    assert places["e0"][0] == 0
    assert places["e3"][0] == 1
