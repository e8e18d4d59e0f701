"""Templates: every value from data is escaped, and what a page would obey in it is written out."""

from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kgcf import __version__
from kgcf.data.vocabulary import Named
from kgcf.screen import inert
from kgcf.web.addresses import API, address
from kgcf.web.asking import summarise_run
from kgcf.web.name_index import NameIndex
from kgcf.web.static import asset_address

REVIEWER = "kgcf-reviewer"  # the cookie that remembers a name
_LONGEST = 120  # characters of a name that are shown
_UNBREAKABLE = 24  # letters without a space that a narrow screen can hardly hold


def render(
    request: Request,
    page: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
    *,
    stranger: bool = False,
    **values: Any,  # noqa: ANN401
) -> HTMLResponse:
    """A page from its template; a `stranger` is not told which runs there are."""
    app = request.app
    runs = {} if stranger else app.state.runs
    served = values.pop("served", None) or _only(runs)
    text = (
        templates()
        .get_template(page)
        .render(
            **values,
            request=request,
            served=served,
            summary=None if served is None else summarise_run(served),
            runs=runs,
            secret=app.state.access.secret,
            reviewer=unquote(request.cookies.get(REVIEWER, "")),
            twin=_twin(request),
            version=__version__,
        )
    )
    return HTMLResponse(text, status, headers)


@cache
def templates() -> Environment:
    """The environment of all templates."""
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, finalize=_inert, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals.update(address=address, asset=asset_address, api=API)
    environment.filters.update(named=named, cut=cut, percent=percent, reference=_reference)
    environment.filters.update(typed=_typed, plain_value=_plain_value)
    return environment


def named(entity: Named, label: bool = True) -> Markup:
    """A name and, small behind it, the label where that is something else; its direction of writing stays inside."""
    name = Markup('<bdi class="{}">{}</bdi>').format(_kind(entity.name), inert(cut(entity.name)))
    if not label or entity.label == entity.name:
        return name
    return name + Markup(' <span class="label {}">{}</span>').format(_kind(entity.label), inert(cut(entity.label)))


def cut(text: str) -> str:
    """A text of a bearable length."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def percent(share: float) -> str:
    """A probability as people read it; neither certain nor impossible unless it is."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def _kind(text: str) -> str:
    """`long` where a line can hardly hold the words, so that they may be broken inside."""
    return "long" if any(len(word) > _UNBREAKABLE for word in text.split()) else "name"


def _reference(entity: Named, index: NameIndex) -> str:
    """What stands for an entity or relation in an address."""
    return index.reference(index.id_of(entity.label))


def _typed(entity: Named, index: NameIndex) -> str:
    """What people would type for it: its name, where that is plain and nobody else's."""
    number = index.id_of(entity.label)
    plain = inert(entity.name) == entity.name and len(entity.name) <= _LONGEST
    return entity.name if plain and index.resolve(entity.name) == [number] else index.reference(number)


def _plain_value(value: object) -> str:
    """A setting as its file has it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "not set"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inert(value: object) -> object:
    return inert(value, keep="\n") if isinstance(value, str) and not isinstance(value, Markup) else value


def _twin(request: Request) -> str:
    """The address of the page's JSON."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{API}{request.url.path}{query}"


def _only(runs: dict[str, Any]) -> Any:  # noqa: ANN401
    """The run that a page without one is about: the only one there is."""
    return next(iter(runs.values())) if len(runs) == 1 else None


def _read(name: str) -> str:
    return (resources.files("kgcf.web") / "templates" / name).read_text(encoding="utf-8")
