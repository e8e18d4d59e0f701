"""The JSON twins of the pages, below /api; the same objects as in Python and on the command line."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter
from starlette.responses import StreamingResponse

from kgcf.explanation.explanation import Explanation
from kgcf.prediction.outputs import write_answers
from kgcf.web import reviewing
from kgcf.web.asking import ask, entity_facts, explain, missing, search, summarise_run
from kgcf.web.background import Progress
from kgcf.web.lane import Attend, wait_for
from kgcf.web.models import EntityFacts, MissingLinks, QuestionAnswers, ReviewList, RunReport, RunSummary, SearchResult
from kgcf.web.refusals import Refused
from kgcf.web.rendering import REVIEWER
from kgcf.web.reporting import can_diagnose, report, start_diagnosing
from kgcf.web.requests import (
    Asking,
    Chosing,
    Decide,
    Every,
    Explained,
    Explaining,
    Hits,
    KindOf,
    LinkNumber,
    Propose,
    Questioned,
    SearchText,
    Served,
    Text,
    Top,
    Undo,
)
from kgcf.web.review.export import MEDIA, ExportFormat
from kgcf.web.review.store import Decision, ReviewedLink, State
from kgcf.web.served_run import ServedRun

T = TypeVar("T")
_YEAR = 365 * 24 * 3600
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refused, "description": description}
    for status, description in {
        400: "Something that cannot be read.",
        401: "The token is missing or wrong.",
        403: "A change that does not come from the server's own pages.",
        404: "Unknown run, entity, relation or link; suggestions where there are some.",
        409: "An ambiguous name, or somebody was faster.",
        413: "The request is too large.",
        421: "A host name that is not the server's.",
        422: "Something that cannot be asked.",
        503: "Too many questions at once, or one that takes too long.",
    }.items()
}
router = APIRouter(prefix="/api", responses=_REFUSALS)


async def computed(request: Request, served: ServedRun, work: Callable[[Attend], T]) -> T:
    """What the model's thread makes of some work; given up when the reader leaves."""
    ticket = served.lane.join(served.compute(work))
    return await wait_for(ticket, request.is_disconnected, served.limits.seconds)


def remember(response: Response, reviewer: str) -> None:
    """Let the browser keep the reviewer's name."""
    response.set_cookie(REVIEWER, quote(reviewer.strip()), max_age=_YEAR, httponly=True, samesite="strict")


@router.get("/runs", tags=["run"])
def list_runs(request: Request) -> list[RunSummary]:
    """The runs of this server."""
    return [summarise_run(served) for served in request.app.state.runs.values()]


@router.get("/runs/{run}", tags=["run"])
def run_summary(served: Served) -> RunSummary:
    """One run in a line."""
    return summarise_run(served)


@router.get("/runs/{run}/search", tags=["ask"])
def find_names(served: Served, q: SearchText = "", kind: KindOf = None, limit: Hits = 10) -> SearchResult:
    """Entities and relations by a part of their label or name, whatever the case and the accents."""
    return search(served, q, kind, limit)


@router.get("/runs/{run}/entity", tags=["ask"])
def entity(served: Served, name: Text, every: Every = False) -> EntityFacts:
    """The known facts of an entity, by relation."""
    return entity_facts(served, name, every)


@router.get("/runs/{run}/missing", tags=["ask"])
async def entity_missing(request: Request, served: Served, name: Text, top: Top = 10) -> MissingLinks:
    """The most likely missing facts of an entity."""
    return await computed(request, served, lambda attend: missing(served, name, top, attend))


@router.get("/runs/{run}/question", tags=["ask"])
async def question(request: Request, served: Served, wanted: Questioned) -> QuestionAnswers:
    """The best answers to a question with one part left out, as `kgcf predict`."""
    return await answered(request, served, wanted)


@router.get(
    "/runs/{run}/question.csv", tags=["ask"], response_class=Response, responses={200: {"content": {"text/csv": {}}}}
)
async def question_csv(request: Request, served: Served, wanted: Questioned) -> Response:
    """The same answers as a table, as `kgcf complete --output` writes it."""
    found = await answered(request, served, wanted)
    with tempfile.TemporaryDirectory(prefix="kgcf-csv-") as folder:
        path = Path(folder) / "answers.csv"
        write_answers(found.answers, path)
        text = path.read_text(encoding="utf-8")
    return Response(text, media_type="text/csv", headers=_attached("answers.csv"))


@router.get(
    "/runs/{run}/answer",
    tags=["ask"],
    response_class=Response,
    responses={
        200: {
            "description": "`Explanation.to_json()`: docs/explanations.md says what is in it.",
            "content": {"application/json": {"schema": TypeAdapter(dict[str, Any]).json_schema()}},
        }
    },
)
async def answer(request: Request, served: Served, wanted: Explained) -> Response:
    """Why a triple is predicted, or is not, as `kgcf explain --json`."""
    found = await explained(request, served, wanted)
    return Response(TypeAdapter(dict[str, Any]).dump_json(found.to_json()), media_type="application/json")


async def answered(request: Request, served: ServedRun, wanted: Asking) -> QuestionAnswers:
    """Answers from the model's thread."""
    choice = wanted.top, wanted.known, wanted.min_probability
    return await computed(request, served, lambda _: ask(served, wanted.parts, *choice))


async def explained(request: Request, served: ServedRun, wanted: Explaining) -> Explanation:
    """An explanation from the model's thread."""
    return await computed(request, served, lambda _: explain(served, wanted.parts, wanted.paths, wanted.asked))


@router.get("/runs/{run}/about", tags=["run"])
def about(served: Served) -> RunReport:
    """Data, configuration, metrics with their protocol, curves, calibration, diagnostics."""
    return report(served)


@router.post("/runs/{run}/about/diagnostics", tags=["run"], status_code=202)
def diagnostics(served: Served) -> Progress:
    """Measure treatment and matching, in the background; `about` has them when they are ready."""
    if served.diagnostics is None and served.diagnosing.progress.state != "running" and can_diagnose(served):
        start_diagnosing(served)
    return served.diagnosing.progress


@router.get("/runs/{run}/about/diagnostics", tags=["run"])
def diagnosing(served: Served) -> Progress:
    """How far that is."""
    return served.diagnosing.progress


@router.get("/runs/{run}/review", tags=["review"])
def review(served: Served, choice: Chosing) -> ReviewList:
    """Proposed links, what was said of them, and the precision so far."""
    return reviewing.review(served, choice)


@router.post("/runs/{run}/review/decide", tags=["review"])
def decide(served: Served, wanted: Decide, response: Response) -> ReviewedLink:
    """Accept, reject or leave a link."""
    found = reviewing.decide(served, wanted)
    remember(response, wanted.reviewer)
    return found


@router.post("/runs/{run}/review/undo", tags=["review"])
def undo(served: Served, wanted: Undo) -> ReviewedLink:
    """Take back the reviewer's last decision that still counts."""
    return reviewing.undo(served, wanted.reviewer)


@router.get("/runs/{run}/review/links/{link}", tags=["review"])
def history(served: Served, link: LinkNumber) -> list[Decision]:
    """All that was said of a link, newest first."""
    return served.reviews.history(link)


@router.post("/runs/{run}/review/propose", tags=["review"], status_code=202)
def propose(served: Served, wanted: Propose) -> Progress:
    """Complete the graph in the background; its links come to the review."""
    reviewing.propose(served, wanted)
    return served.background.progress


@router.get("/runs/{run}/review/propose", tags=["review"])
def proposing(served: Served) -> Progress:
    """How far that is."""
    return served.background.progress


@router.post("/runs/{run}/review/stop", tags=["review"])
def stop(served: Served) -> Progress:
    """Stop it; nothing of it is kept."""
    return served.background.stop()


@router.get("/runs/{run}/review/export.{form}", tags=["review"], response_class=Response)
def export(served: Served, form: ExportFormat, verdict: Annotated[State, Query()] = "accept") -> Response:
    """Judged links as TSV, N-Triples, or RDF-star in Turtle, with the model's confidence."""
    return _file(reviewing.export(served, form, verdict), f"{verdict}.{form}", MEDIA[form])


@router.get("/runs/{run}/review/facts.{form}", tags=["review"], response_class=Response)
def facts(served: Served, form: reviewing.FactFormat) -> Response:
    """The observed graph with the accepted links: for `kgcf predict --graph`, or a new training."""
    return _file(reviewing.facts(served, form), f"facts.{form}", MEDIA[form])


def _file(lines: Iterator[str], name: str, media: str) -> Response:
    """A file to keep; the first line is made before anything is sent, so that a refusal can still be one."""
    first = next(lines, "")
    return StreamingResponse(itertools.chain([first], lines), media_type=media, headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
