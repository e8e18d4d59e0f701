"""The explorer in a real browser: search, question, explanation, review by keyboard, reload, export; nothing is run.

Playwright drives the machine's own Chromium.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from kgcf.runs.run import Run
from kgcf.web.application import make_application
from kgcf.web.review.store import Chosen
from kgcf.web.served_run import ServedRun
from kgcf.web.server import listen

from .conftest import NAMES
from .test_review import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI", "") in ("", "0", "false"),
    reason="no Chromium on this machine: nobody looks at the explorer",
)


class Site:
    """A running server, and what a browser complained about."""

    def __init__(self, address: str, served: ServedRun) -> None:
        self.address = address
        self.served = served


@pytest.fixture(scope="module")
def site(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    served = ServedRun("family", run, "all", tmp_path_factory.mktemp("browser") / "review.sqlite")
    port = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_application({"family": served}), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
    thread.start()
    yield Site(f"http://127.0.0.1:{port.getsockname()[1]}", served)
    server.should_exit = True
    thread.join()
    port.close()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    assert CHROMIUM is not None, "CI has no Chromium, so nobody looks at the explorer: `make test` installs it as root."
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield found
        found.close()


@pytest.fixture
def page(browser: "Browser", site: Site) -> "Iterator[Page]":
    """A page on which any error of a script, any blocked file and any dialog is a failure."""
    context = browser.new_context(base_url=site.address, viewport={"width": 1000, "height": 900})
    context.set_default_timeout(30_000)
    found, wrong = context.new_page(), list[str]()
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    found.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
    found.on(
        "request", lambda asked: wrong.append(asked.url) if not asked.url.startswith((site.address, "data:")) else None
    )
    yield found
    context.close()
    assert wrong == []


def propose(site: Site) -> None:
    """Links to judge, all of them open."""
    if not site.served.reviews.count(Chosen("all")):
        site.served.propose(["friend"], 10, 0.0)
        wait_until(lambda: site.served.background.progress.state == "done")


def test_from_the_search_to_an_explanation(page: "Page") -> None:
    page.goto("/")
    search = page.get_by_role("combobox", name="Search entities and relations")
    search.type("ana ma")
    page.get_by_role("option").first.wait_for()
    search.press("ArrowDown")
    search.press("Enter")
    page.wait_for_url("**/entity?name=e0")
    assert page.locator("h1").inner_text().startswith("Ana María")
    page.locator("#missing ~ [data-load] .rows li").first.wait_for()
    page.get_by_role("link", name="ask for more").first.click()
    page.wait_for_url("**/question?**")
    page.get_by_label("Known answers too").check()
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("link", name="Why?").first.click()
    page.wait_for_selector("html[data-drawn]", state="attached")
    drawn: dict[str, Any] = page.evaluate("JSON.parse(document.documentElement.dataset.drawn)")
    assert drawn["visible"]
    assert len(drawn["paths"]) == page.locator("ol.paths > li").count()
    if drawn["paths"]:
        page.locator("button.path").first.click()
        assert page.locator("ol.paths > li.chosen").count() == 1
    boxes = page.locator("ol.paths > li input")
    if boxes.count():  # pages that let one take a path away
        boxes.first.uncheck()
        assert "without path 1" in page.locator("#what-if").inner_text()


def test_a_question_is_asked_with_the_keyboard_alone(page: "Page") -> None:
    page.goto("/runs/family/question")
    page.get_by_label("Head").focus()
    page.keyboard.type("José")
    page.get_by_role("option").nth(1).wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.get_by_label("Head").input_value() in ("e6", "e7")  # namesakes are told apart by their labels
    page.keyboard.press("Tab")
    page.keyboard.type("friend")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.wait_for_url("**/question?head=e*")
    assert page.locator("table.answers tbody tr").count() > 0


def test_judging_with_the_keyboard_survives_a_reload(page: "Page", site: Site) -> None:
    propose(site)
    page.goto("/runs/family/review")
    page.wait_for_selector("html[data-ready=review]", state="attached")
    page.keyboard.press("a")
    assert "Your name first" in page.locator("#status").inner_text()
    page.keyboard.type("Ann")
    page.keyboard.press("Escape")
    words = [row.get_attribute("data-words") for row in page.locator(".judge > li").all()]
    page.keyboard.press("a")
    page.get_by_text(f"Accepted: {words[0]}").wait_for()
    page.keyboard.press("r")
    page.get_by_text(f"Rejected: {words[1]}").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("l")
    page.get_by_text(f"Left undecided: {words[2]}").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Taken back.").wait_for()
    page.goto("/runs/family/review?state=accept")
    assert [row.get_attribute("data-words") for row in page.locator(".judge > li").all()] == words[:1]
    assert page.get_by_label("Your name").input_value() == "Ann"
    counts = {state: site.served.reviews.count(Chosen(state)) for state in ("accept", "reject", "leave")}
    assert counts == {"accept": 1, "reject": 1, "leave": 0}
    with page.expect_download() as waiting:
        page.get_by_role("link", name="N-Triples").first.click()
    exported = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert len(exported.splitlines()) == 1


def test_hostile_names_do_nothing(page: "Page") -> None:
    for label in ("e1", "e9", "e5"):
        page.goto(f"/runs/family/answer?head={label}&relation=parent&tail=e12")
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.goto(f"/runs/family/entity?name={label}")
        page.wait_for_load_state("networkidle")
    page.get_by_role("combobox").type("script>")
    page.get_by_role("option").first.wait_for()
    assert NAMES["e1"] in page.get_by_role("option").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_a_phone(browser: "Browser", site: Site, scheme: Any) -> None:
    propose(site)
    context = browser.new_context(base_url=site.address, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    phone = context.new_page()
    for address in (
        "/runs/family",
        "/runs/family/entity?name=e3",
        "/runs/family/question?head=e3&relation=friend&known=true&top=40",
        "/runs/family/answer?head=e3&relation=friend&tail=e12",
        "/runs/family/about",
        "/runs/family/review?state=all",
        "/api",
        "/nothing",
    ):
        phone.goto(address)
        phone.wait_for_load_state("networkidle")
        needed, there = phone.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert needed <= there, address
        assert contrast(phone) == [], address
    context.close()


CONTRAST = """() => {
  function light(color) {
    const parts = color.match(/[\\d.]+/g).map(Number).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  }
  function behind(element) {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)|transparent/.test(color)) { return color; }
    }
    return "rgb(255, 255, 255)";
  }
  const wrong = [];
  document.querySelectorAll("h1, h2, h3, p, a, td, th, dt, dd, button, label, span, summary").forEach((element) => {
    const own = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.getClientRects().length || element.closest("#why, .sr, .skip, [disabled]")) { return; }
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    const text = element.className + ": " + element.textContent.trim().slice(0, 40);
    if ((a + 0.05) / (b + 0.05) < 4.5) { wrong.push(text); }
  });
  return wrong;
}"""


def contrast(page: "Page") -> list[str]:
    """Texts that do not stand out from what is behind them by 4.5 to 1."""
    found: list[str] = page.evaluate(CONTRAST)
    return found
