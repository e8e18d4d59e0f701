"""The application: pages, JSON twins, files, and what is said when something cannot be had."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kgcf import __version__
from kgcf.errors import KgcfError
from kgcf.web import api, pages, static
from kgcf.web.addresses import API
from kgcf.web.guard import Access, Guard
from kgcf.web.lane import Abandoned
from kgcf.web.limits import LIMITS, Limits
from kgcf.web.refusals import TITLES, Refused, refused_by
from kgcf.web.rendering import render
from kgcf.web.served_run import ServedRun

_LEFT = 499  # nobody reads it: the reader has gone
_SENTENCES = {
    404: "There is no page at this address. Start again from the search.",
    405: "This address is not asked that way. Start again from the search.",
}


def make_application(runs: Mapping[str, ServedRun], access: Access | None = None, limits: Limits = LIMITS) -> FastAPI:
    """The explorer of some runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for served in runs.values():
            served.close()

    app = FastAPI(
        title="kgcf",
        version=__version__,
        description="Ask a completed knowledge graph, see why, and judge what it proposes.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # they load scripts from elsewhere; ours is a page
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.runs = dict(runs)
    app.state.access = access or Access()
    app.include_router(api.router)
    app.include_router(static.router)
    app.include_router(pages.router)
    app.add_exception_handler(KgcfError, _refuse_error)
    app.add_exception_handler(RequestValidationError, _refuse_values)
    app.add_exception_handler(HTTPException, _refuse_address)
    app.add_exception_handler(Abandoned, _nobody)
    app.add_exception_handler(Exception, _apologise)
    app.add_middleware(Guard, access=app.state.access, limits=limits, refuse=_answer_of(app))
    return app


def _answer_of(app: FastAPI) -> Callable[[Request, Refused], Response]:
    """How the guard answers, before a request has reached the application."""

    def answer(request: Request, refused: Refused) -> Response:
        request.scope.setdefault("app", app)
        return refuse(request, refused, stranger=True)

    return answer


def refuse(request: Request, refused: Refused, stranger: bool = False) -> Response:
    """A refusal as JSON below /api, else as a page."""
    headers = {"retry-after": "1"} if refused.status == 503 else {}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if request.url.path == API or request.url.path.startswith(f"{API}/"):
        suggestions = [vars(suggestion) for suggestion in refused.suggestions]
        values = {"status": refused.status, "error": refused.error, "suggestions": suggestions}
        return JSONResponse(values, refused.status, headers)
    page = "access.html" if refused.status == 401 else "refused.html"
    title = TITLES.get(refused.status, "That did not work")
    return render(request, page, refused.status, headers, stranger=stranger, refused=refused, title=title)


async def _refuse_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, KgcfError)
    return refuse(request, refused_by(error))


async def _refuse_values(request: Request, error: Exception) -> Response:
    """A value that cannot be: which one, and why."""
    assert isinstance(error, RequestValidationError)
    said = []
    for problem in error.errors()[:3]:
        place = ".".join(str(part) for part in problem["loc"][1:]) or "the request"
        said.append(f"{place}: {problem['msg']}")
    return refuse(request, Refused(422, f"{'; '.join(said)}."))


async def _refuse_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.status_code, str(error.detail))
    return refuse(request, Refused(error.status_code, sentence))


async def _nobody(_: Request, __: Exception) -> Response:
    return Response(status_code=_LEFT)


async def _apologise(request: Request, _: Exception) -> Response:
    return refuse(request, Refused(500, "This is a mistake of ours; the server's output has the details."))
