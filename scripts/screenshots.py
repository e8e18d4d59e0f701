"""Take the pictures of docs/explorer.md: the explorer on a run, in the machine's own Chromium, driven by Playwright.

Run: python scripts/screenshots.py RUN   (a run on the embedded graph `world`)
"""

import argparse
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from kgcf.web.application import make_application
from kgcf.web.served_run import ServedRun, open_runs
from kgcf.web.server import listen

DOCS = Path(__file__).resolve().parents[1] / "docs"
_SECONDS = 600.0


@contextmanager
def serving(served: ServedRun) -> Iterator[str]:
    """The explorer of one run, for the length of the block."""
    port = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_application({served.key: served}), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port.getsockname()[1]}/runs/{served.key}"
    finally:
        server.should_exit = True
        thread.join()
        port.close()


def judge_some(served: ServedRun) -> None:
    """Links to judge, some of them judged: the first is accepted, every third one rejected."""
    served.propose(["is member of"], 60, 0.0)
    served.background.join(_SECONDS)
    for number, link in enumerate(served.reviews.links(limit=12)):
        served.reviews.decide(link.id, "reject" if number % 3 == 2 else "accept", "Ann")


def take(page: Page, base: str) -> None:
    """One picture after another."""
    page.goto(f"{base}/question?head=Mexico&relation=is+member+of&top=8")
    page.screenshot(path=DOCS / "explorer-question.png")
    page.goto(f"{base}/answer?head=Mexico&relation=is+member+of&tail=Caribbean+Community")
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.screenshot(path=DOCS / "explorer-answer.png")
    page.emulate_media(color_scheme="dark")
    page.goto(f"{base}/review")
    page.wait_for_selector("html[data-ready=review]", state="attached")
    page.screenshot(path=DOCS / "explorer-review.png")


def main() -> None:
    """Serve, judge, look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    with tempfile.TemporaryDirectory(prefix="kgcf-pictures-") as reviews:
        (served,) = open_runs([run], reviews=Path(reviews)).values()
        judge_some(served)
        with serving(served) as base, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1000, "height": 700}, color_scheme="light")
            page.set_default_timeout(1000 * _SECONDS)
            take(page, base)
            browser.close()


if __name__ == "__main__":
    main()
