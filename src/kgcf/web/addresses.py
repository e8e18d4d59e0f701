"""Where pages are: `/runs/KEY/PAGE?…`, and their twins below `/api`."""

from urllib.parse import quote, urlencode

API = "/api"


def address(key: str, page: str = "", **values: object) -> str:
    """The address of a page of a run; values that are empty or None are left out."""
    place = f"/runs/{quote(key, safe='')}" + (f"/{page}" if page else "")
    given = {name: _text(value) for name, value in values.items() if value not in (None, "", False)}
    return f"{place}?{urlencode(given)}" if given else place


def _text(value: object) -> str:
    return "true" if value is True else f"{value:g}" if isinstance(value, float) else str(value)
