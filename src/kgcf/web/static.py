"""Style and scripts, all our own: nothing is loaded from anywhere else."""

import hashlib
from functools import cache
from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

from kgcf.errors import UnknownNameError
from kgcf.web import explanation_parts

router = APIRouter(prefix="/static", include_in_schema=False)
_MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}  # another content has another address


@cache
def read_asset(name: str) -> str:
    """The text of one of our files."""
    return (resources.files("kgcf.web") / "assets" / name).read_text(encoding="utf-8")


@cache
def asset_address(name: str) -> str:
    """Where a file is, with a part that changes with its content."""
    return f"/static/{name}?v={hashlib.sha256(read_asset(name).encode()).hexdigest()[:12]}"


@router.get("/explanation/{name}")
def explanation_file(name: str) -> Response:
    """A file that the pages of explanations share."""
    text = explanation_parts.file(name)
    if text is None:
        raise UnknownNameError("There is no such file. Load the page again.")
    return _response(text, name)


@router.get("/{name}")
def own_file(name: str) -> Response:
    """A file of the explorer."""
    if name not in _names():
        raise UnknownNameError("There is no such file.")
    return _response(read_asset(name), name)


@cache
def _names() -> frozenset[str]:
    return frozenset(entry.name for entry in (resources.files("kgcf.web") / "assets").iterdir())


def _response(text: str, name: str) -> Response:
    return Response(text, media_type=_MEDIA[name.rpartition(".")[2]], headers=_FOREVER)
