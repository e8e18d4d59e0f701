import html
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from kgcf.data.vocabulary import Named
from kgcf.errors import SettingsError
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.explanation.page import render_page, write_page
from kgcf.explanation.palette import DARK, LIGHT, line_style
from kgcf.explanation.plots import arrange_entities, draw_paths, free_point, swerve
from kgcf.explanation.words import chance
from kgcf.figure_files import drawable
from kgcf.figure_fonts import MISSING, families_for, installed, visible

from .test_explainer import people

HEAVIEST = How(attribution="gradient")  # a model of random weights: paths there are, reasons hardly
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None and os.environ.get("CI", "") in ("", "0", "false"),
    reason="no Chromium on this machine: the page is not drawn",
)


def browse(page: Path, *options: str) -> str:
    """Open a page in headless Chromium and let its scripts run."""
    assert BROWSER is not None, "CI has no Chromium, so nobody looks at the page: `make test` installs it as root."
    profile = page.parent / "profile"
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--blink-settings=preferredColorScheme=1",
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
    explanation = people().explain("Ann", "likes", "Cyd", How(top=6, attribution="gradient"))
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
def test_switches_show_the_score_of_every_subset(tmp_path: Path) -> None:
    found = people().explain("Ann", "likes", "Cyd", How(top=3, attribution="gradient"))
    assert len(found.subsets) == 8
    page = tmp_path / "page.html"
    switch = """<script>
    document.querySelectorAll("ol.paths input").forEach((box, i) => { if (i !== 1) { box.click(); } });
    document.documentElement.dataset.drawn = JSON.stringify(window.kgcf.shown());</script></body>"""
    page.write_text(render_page(found).replace("</body>", switch), encoding="utf-8")
    drawn = drawn_in(browse(page, "--dump-dom"))
    left = "" if found.subsets[0b101].reached else "; no path is left"
    assert drawn["score"] == f"{chance(found.subsets[0b101].probability)} without paths 1 and 3{left}"


def test_there_are_no_switches_without_subsets() -> None:
    assert 'type="checkbox" checked' in render_page(people().explain("Ann", "likes", "Cyd", HEAVIEST))
    many = people().explain("Ann", "likes", "Dan", How(top=12, attribution="gradient"))
    assert many.subsets == ()
    assert 'type="checkbox" checked' not in render_page(many)


@pytest.fixture(scope="module")
def shared_edges() -> Explanation:
    """Eight paths that share edges."""
    return people().explain("Ann", "likes", "Dan", How(top=12, attribution="gradient"))


def rgb(color: str) -> str:
    """A colour as browsers write it."""
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


@needs_browser
@pytest.mark.parametrize(("scheme", "palette"), [(1, LIGHT), (0, DARK)])
def test_paths_have_the_colour_of_their_line(
    shared_edges: Explanation, scheme: int, palette: tuple[str, ...], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    write_page(shared_edges, page)
    drawn = drawn_in(browse(page, "--dump-dom", f"--blink-settings=preferredColorScheme={scheme}"))
    expected = [rgb(color).replace(" ", "") for color in palette[: len(shared_edges.paths)]]
    assert len(set(expected)) == 8
    lines = [{color.replace(" ", "") for color in colors} for colors in drawn["colors"]]
    assert lines == [{color} for color in expected]
    assert [color.replace(" ", "") for color in drawn["swatches"]] == expected * 2  # in the list, and in the legend


@needs_browser
def test_a_shared_edge_has_a_line_for_every_path(shared_edges: Explanation, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(shared_edges, page)
    drawn = drawn_in(browse(page, "--dump-dom"))
    paths = expected_paths(json.loads(json.dumps(shared_edges.to_json())))
    travelled = [str(number) for number, path in enumerate(paths, start=1) if ["e0", "likes", "e2"] in path]
    assert len(travelled) > 1
    assert len(drawn["readings"]) == sum(map(len, paths))
    readings = [reading for reading in drawn["readings"] if reading.startswith("Ann —likes→ Cyd")]
    assert len(readings) == len(travelled)
    assert all(re.findall(r"path (\d+) with importance", reading) == travelled for reading in readings)


# The page in a frame as narrow as a phone, since no window is; it tells which words a line break divides.
NARROW = """<!DOCTYPE html><body style="margin:0"><iframe width="360" height="900" style="border:0" srcdoc="{page}">
</iframe><script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", function () {{
  const inner = frame.contentDocument, broken = [];
  const texts = inner.createTreeWalker(inner.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {{
    if (texts.currentNode.parentElement.closest("script, .long")) {{ continue; }}
    for (const word of texts.currentNode.data.matchAll(/\\p{{L}}+/gu)) {{
      const range = inner.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top)));
      if (lines.size > 1) {{ broken.push(word[0]); }}
    }}
  }}
  const drawn = Object.assign(JSON.parse(inner.documentElement.dataset.drawn), {{ broken: broken }});
  document.documentElement.dataset.drawn = JSON.stringify(drawn);
}});
</script>"""

LONG_NAMES = {
    "e0": "A" * 5000,
    "e1": "http://example.org/resource/a/long/iri/without/any/space#fragment_12345",
    "e2": "International Organisation for Standardisation of Extraordinarily Long Names " * 4,
    "e4": "مدينة طويلة الاسم",
    "likes": "is_related_to_by_a_long_predicate_without_spaces",
}


def renamed(part: Any) -> Any:
    """A part of an explanation with long names."""
    if isinstance(part, Named):
        return replace(part, name=LONG_NAMES.get(part.label, part.name))
    if isinstance(part, tuple):
        return tuple(map(renamed, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: renamed(getattr(part, field.name)) for field in fields(part)})
    return part


@needs_browser
@pytest.mark.parametrize("change", [lambda found: found, renamed])
def test_nothing_overflows_a_phone(
    shared_edges: Explanation, change: Callable[[Explanation], Explanation], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text(NARROW.format(page=html.escape(render_page(change(shared_edges)))), encoding="utf-8")
    drawn = drawn_in(browse(page, "--dump-dom"))
    assert drawn["width"] == 360
    assert drawn["needed"] <= drawn["width"]
    assert drawn["inside"]
    assert drawn["broken"] == []


@needs_browser
def test_the_canvas_is_not_empty(tmp_path: Path) -> None:
    inked = []
    for name, found in (
        ("paths", people().explain("Ann", "likes", "Cyd", HEAVIEST)),
        ("none", people().explain("Ann", "likes", "Hal")),
    ):
        write_page(found, tmp_path / f"{name}.html")
        browse(tmp_path / f"{name}.html", f"--screenshot={tmp_path / name}.png")
        pixels = matplotlib.image.imread(tmp_path / f"{name}.png")[140:1200, 60:1200, :3]
        inked.append((np.ptp(pixels, axis=2) > 0.3).mean())  # coloured: the lines of the paths
    assert inked[0] > 0.001
    assert inked[1] == 0


@needs_browser
def test_names_that_look_like_code_are_names(tmp_path: Path) -> None:
    explanation = people().explain("Ann", "likes", "Cyd", HEAVIEST)
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
    page = render_page(people().explain("Ann", "likes", "Cyd", HEAVIEST))
    assert not re.search(r"<(script|img|link|iframe)[^>]*(src|href)=", page)
    assert "{{" not in page.split("<script>", maxsplit=1)[0]
    assert 'id="explanation"' in page


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: people().explain("Ann", "likes", "Cyd", HEAVIEST), "Having the same role changes the probability"),
        (lambda: people().explain("Ann", "likes", "Cyd", HEAVIEST), "Compared: Ann and Cyd have"),
        (lambda: people(treatment=False).explain("Ann", "likes", "Cyd", HEAVIEST), "This model has no treatment"),
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
    found = people().explain("Ann", "likes", "Cyd", HEAVIEST)
    evidence = found.counterfactual
    assert evidence is not None
    pair = evidence.substitute
    assert pair is not None
    by_treatment = {0: evidence.untreated_probability, 1: evidence.treated_probability}
    own, page = int(evidence.factual_treatment), render_page(found)
    assert "<caption>The model on Ann —likes→ Cyd</caption>" in page
    assert table_rows(page, "treatments") == [
        ["as it is", str(own), f"{by_treatment[own]:.3f}"],
        ["under the other treatment", str(1 - own), f"{by_treatment[1 - own]:.3f}"],
    ]
    assert by_treatment[own] != pytest.approx(by_treatment[1 - own], abs=1e-3)
    triple = f"{pair.head.name} —likes→ {pair.tail.name}"
    known = "yes" if pair.known else "no"
    assert table_rows(page, "other-pair") == [[triple, str(1 - own), f"{pair.distance:.3f}", known]]
    assert f"Under the other treatment Ann —likes→ Cyd would have probability {by_treatment[1 - own]:.3f}" in page


def test_without_another_pair_the_treatments_still_stand() -> None:
    found = people().explain("Ann", "likes", "Cyd", HEAVIEST)
    assert found.counterfactual is not None
    alone = replace(
        found.counterfactual, substitute=None, counterfactual_treatment=found.counterfactual.factual_treatment
    )
    page = render_page(replace(found, counterfactual=alone))
    assert len(table_rows(page, "treatments")) == 2
    assert "other-pair" not in page.split("</main>", maxsplit=1)[0]


def test_labels_stand_beside_names() -> None:
    page = render_page(people().explain("Ann", "likes", "Cyd", HEAVIEST))
    ann, likes, cyd = ("<bdi>Ann</bdi>", "<bdi>likes</bdi>", "<bdi>Cyd</bdi>")
    question = f'{ann} <span class="label">e0</span> <span class="arrow">—{likes}→</span> {cyd} <span class="label">e2'
    assert f"<h1>{question}" in page


@needs_browser
def test_namesakes_are_told_apart_on_the_canvas(tmp_path: Path) -> None:
    explanation = people().explain("Ann", "likes", "Cyd", HEAVIEST)
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
        draw_paths(people().explain("Ann", "likes", tail, HEAVIEST), path)
        sizes[tail] = (np.ptp(matplotlib.image.imread(path)[..., :3], axis=2) > 0.3).sum()
    assert sizes["Cyd"] > 1000
    assert sizes["Hal"] == 0
    with pytest.raises(SettingsError, match=".png"):
        draw_paths(people().explain("Ann", "likes", "Cyd", HEAVIEST), tmp_path / "paths.pdf")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved."""
    saved: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *options: Any, **named: Any) -> None:
        saved.append(figure)
        save(figure, *options, **named)

    monkeypatch.setattr(Figure, "savefig", keep)
    return saved


def test_the_picture_names_its_paths(shared_edges: Explanation, figures: list[Figure], tmp_path: Path) -> None:
    draw_paths(shared_edges, tmp_path / "paths.png")
    legend = figures[0].legends[0]
    effects = [path.effect.without.probability for path in shared_edges.paths if path.effect is not None]
    figures_shown = [f"{number}  {probability:.3f}" for number, probability in enumerate(effects, start=1)]
    assert [text.get_text() for text in legend.get_texts()] == figures_shown
    assert [line.get_color() for line in legend.get_lines()] == list(LIGHT)
    arrows = [
        text.arrow_patch for text in figures[0].axes[0].texts if isinstance(text, Annotation) and text.arrow_patch
    ]
    lines = Counter(to_hex(arrow.get_edgecolor()) for arrow in arrows)
    assert lines == {color: len(path.edges) for color, path in zip(LIGHT, shared_edges.paths, strict=True)}


def test_characters_without_a_font_are_seen_to_be_missing(
    shared_edges: Explanation, figures: list[Figure], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(LONG_NAMES, "e3", "\U0001f9ff 東京\ufe0f")
    latin = frozenset(range(32, 127)) | {ord(character) for character in "…—→·"}
    fonts = {"DejaVu Sans": latin | {ord(MISSING)}, "Liberation Sans": frozenset(map(ord, "é東"))}
    monkeypatch.setattr("kgcf.figure_fonts.installed", lambda: fonts)
    assert visible("\U0001f9ff 東京\ufe0f") == f"{MISSING} 東{MISSING}"
    assert families_for(["abc"]) == ["DejaVu Sans"]
    assert families_for(["abc", "é"]) == ["DejaVu Sans", "Liberation Sans"]
    draw_paths(renamed(shared_edges), tmp_path / "long.png")
    written = "\n".join(text.get_text() for text in (*figures[0].texts, *figures[0].axes[0].texts))
    assert f"→ {MISSING} 東{MISSING}" in written
    assert "stands for a character that no font" in written


def test_the_usual_font_is_there() -> None:
    assert next(iter(installed())) == "DejaVu Sans"
    assert visible("Ann —knows→ Zoë") == "Ann —knows→ Zoë"


def test_lines_keep_clear_of_other_entities() -> None:
    assert swerve((0.0, 0.0), (1.0, 0.0), [(0.5, 1.0)]) == 0
    assert abs(swerve((0.0, 0.0), (1.0, 0.0), [(0.5, 0.0)])) > 0.1


def test_names_of_lines_that_cross_do_not_cover_each_other() -> None:
    ends = ((0.0, 0.0), (1.0, 0.0))
    assert free_point(*ends, 0.0, []) == (0.5, 0.0)
    moved = free_point(*ends, 0.0, [(0.5, 0.0)])
    assert abs(moved[0] - 0.5) > 0.1
    assert moved[1] == 0.0


def test_lines_beyond_the_eighth_have_dashes() -> None:
    styles = [line_style(lane) for lane in range(24)]
    assert len(set(styles)) == 24
    assert [style.dash for style in styles[:9]] == ["solid"] * 8 + ["dashed"]


def test_names_in_pictures_are_inert_and_short() -> None:
    assert drawable("bell\x07 $x$", math=False) == r"bell\x07 $x$"
    assert drawable("bell\x07 $x$") == r"bell\x07 \$x\$"
    assert (drawable("abcdef", 4), drawable("abcdef", 4, keep="end")) == ("abc…", "…def")


def test_places_of_entities_differ() -> None:
    found = people().explain("Ann", "likes", "Dan", How(top=30, attribution="gradient"))
    places = arrange_entities(found)
    assert len(set(places.values())) == len(places) == 6
    assert places["e0"][0] == 0
    assert places["e3"][0] == 1
