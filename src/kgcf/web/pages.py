"""The pages, rendered here and usable without a script; each has its twin below /api."""

from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kgcf.web import reviewing
from kgcf.web.addresses import address
from kgcf.web.api import answered, computed, explained, remember
from kgcf.web.asking import entity_facts, hit, missing, search, summarise_run
from kgcf.web.charts import draw
from kgcf.web.explanation_parts import take_apart
from kgcf.web.guard import POLICY
from kgcf.web.rendering import render
from kgcf.web.reporting import can_diagnose, report, start_diagnosing
from kgcf.web.requests import (
    Chosing,
    Decide,
    Every,
    Explained,
    Propose,
    Questioned,
    SearchText,
    Served,
    Text,
    Undo,
)
from kgcf.web.served_run import ServedRun

M = TypeVar("M", bound=BaseModel)
router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_LISTED = 12  # entities and relations that the search page offers
_FOUND = 30
_MISSING = 10
_WITH_ATTRIBUTES = POLICY.replace("style-src 'self'", "style-src 'self'; style-src-attr 'unsafe-inline'")
_SQUARE = ((0.0, 1.0), (0.0, 1.0))


@router.get("/")
def home(request: Request) -> Response:
    """The only run, or a list of runs."""
    runs: dict[str, ServedRun] = request.app.state.runs
    if len(runs) == 1:
        return RedirectResponse(address(next(iter(runs))), 303)
    return render(request, "runs.html", summaries=[summarise_run(served) for served in runs.values()])


@router.get("/api")
def api_page(request: Request) -> Response:
    """What programs may ask, as a page that needs nothing from elsewhere."""
    return render(request, "api.html", schema=request.app.openapi())


@router.get("/runs/{run}")
def search_page(request: Request, served: Served) -> Response:
    """Where one begins."""
    common: dict[str, Any] = {
        "entities": [hit(served.entities, "entity", i) for i in served.entities.most_frequent(_LISTED)],
        "relations": [hit(served.relations, "relation", i) for i in served.relations.most_frequent(2 * _LISTED)],
    }
    return render(request, "search.html", served=served, found=None, **common)


@router.get("/runs/{run}/search")
def found_page(request: Request, served: Served, q: SearchText = "") -> Response:
    """What a text may mean."""
    if not q.strip():
        return RedirectResponse(address(served.key), 303)
    return render(request, "search.html", served=served, found=search(served, q, None, _FOUND))


@router.get("/runs/{run}/entity")
def entity_page(request: Request, served: Served, name: Text, every: Every = False) -> Response:
    """The facts of an entity; the missing ones are computed while they are read."""
    return render(request, "entity.html", served=served, entity=entity_facts(served, name, every), missing=None)


@router.get("/runs/{run}/missing")
async def missing_page(request: Request, served: Served, name: Text, part: bool = False) -> Response:
    """The likely missing facts of an entity: as a part of its page, or with it where there is no script."""
    found = await computed(request, served, lambda attend: missing(served, name, _MISSING, attend))
    if part:
        return render(request, "missing.html", served=served, missing=found)
    return render(request, "entity.html", served=served, entity=entity_facts(served, name), missing=found)


@router.get("/runs/{run}/question")
async def question_page(request: Request, served: Served, wanted: Questioned) -> Response:
    """A question and its answers; without two parts, the form alone."""
    given = sum(part.strip() not in ("", "?") for part in wanted.parts)
    found = await answered(request, served, wanted) if given > 1 else None
    values = wanted.model_dump(include={"top", "known", "min_probability"})
    return render(request, "question.html", served=served, found=found, parts=wanted.parts, **values)


@router.get("/runs/{run}/answer")
async def answer_page(request: Request, served: Served, wanted: Explained) -> Response:
    """Why a triple is predicted, or is not."""
    found = await explained(request, served, wanted)
    parts = await run_in_threadpool(take_apart, found)
    headers = {"content-security-policy": _WITH_ATTRIBUTES}  # lines of paths have their colours as attributes
    return render(
        request, "answer.html", 200, headers, served=served, explanation=found, parts=parts, paths=wanted.paths
    )


@router.get("/runs/{run}/about")
def run_page(request: Request, served: Served) -> Response:
    """All that is known of a run."""
    if served.diagnostics is None and served.diagnosing.progress.state == "idle" and can_diagnose(served):
        start_diagnosing(served)
    found = report(served)
    charts = {
        "learning": draw("Validation MRR by epoch", [found.learning], ("epoch", "MRR")),
        "reliability": draw(
            "Said against true, on test", found.reliability, ("probability said", "share true"), _SQUARE, diagonal=True
        ),
    }
    return render(request, "run.html", served=served, report=found, charts=charts, can_diagnose=can_diagnose(served))


@router.get("/runs/{run}/review")
def review_page(request: Request, served: Served, choice: Chosing) -> Response:
    """Links to judge."""
    found = reviewing.review(served, choice)
    relations = [hit(served.relations, "relation", i) for i in served.relations.most_frequent(len(served.relations))]
    return render(request, "review.html", served=served, review=found, choice=choice, relations=relations)


@router.post("/runs/{run}/review/decide")
async def decide(request: Request, served: Served) -> Response:
    """A verdict from a form."""
    form = await _form(request)
    wanted = _checked(Decide, form, ("link", "verdict", "reviewer", "note", "seen"))
    found = await run_in_threadpool(reviewing.decide, served, wanted)
    answer = _back(served, form, anchor=f"link-{found.id}")
    remember(answer, wanted.reviewer)
    return answer


@router.post("/runs/{run}/review/undo")
async def undo(request: Request, served: Served) -> Response:
    """The last verdict taken back."""
    form = await _form(request)
    found = await run_in_threadpool(reviewing.undo, served, _checked(Undo, form, ("reviewer",)).reviewer)
    return _back(served, form, anchor=f"link-{found.id}")


@router.post("/runs/{run}/review/propose")
async def propose(request: Request, served: Served) -> Response:
    """More links to judge."""
    form = await _form(request)
    reviewing.propose(served, _checked(Propose, form, ("relation", "top", "min_probability")))
    return _back(served, form)


@router.post("/runs/{run}/review/stop")
async def stop(request: Request, served: Served) -> Response:
    """No more of them."""
    form = await _form(request)
    await run_in_threadpool(served.background.stop)
    return _back(served, form)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


def _checked(model: type[M], form: dict[str, str], names: tuple[str, ...]) -> M:
    """The fields as a request; what was left empty has its default."""
    try:
        return model.model_validate({name: form[name] for name in names if form.get(name, "") != ""})
    except ValidationError as error:
        problems: list[Any] = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise RequestValidationError(problems) from error


def _back(served: ServedRun, form: dict[str, str], anchor: str = "") -> Response:
    """To the list that the form was on."""
    kept = {name: form.get(f"at_{name}", "") for name in ("state", "relation", "min_probability", "first")}
    place = address(served.key, "review", **kept)
    return RedirectResponse(f"{place}#{anchor}" if anchor else place, 303)
