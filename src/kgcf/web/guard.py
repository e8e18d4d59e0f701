"""Who may ask, from where, and how much: checked before anything else looks at a request.

- The host that a browser asks for must be one of ours, so that no other site can point its own name at this server.
- On an address that others can reach, a token is needed: in a link once, then as a cookie, or as a bearer token.
- What changes something must come from our own pages: browsers say where a request comes from, and forms carry a
  secret of this server.
- No page runs inline script, and none can be framed.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kgcf.web.limits import Limits
from kgcf.web.refusals import Refused

COOKIE = "kgcf-access"
FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_PAUSE = 0.3  # seconds before a wrong token is refused
_LOCAL = ("localhost", "127.0.0.1", "::1")
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Access:
    """Which hosts this server answers to, and the token that it asks for, if any."""

    hosts: tuple[str, ...] = _LOCAL
    any_address: bool = False  # whether every numeric address is ours: a server that listens on all of them
    token: str | None = field(default=None, repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)  # that our forms carry

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address

    def is_token(self, text: str) -> bool:
        """Whether a text is the token; takes as long for every wrong one."""
        return self.token is not None and hmac.compare_digest(text.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """What a browser that has shown the token shows from then on."""
        return hmac.new((self.token or "").encode(), b"kgcf cookie", hashlib.sha256).hexdigest()

    def may_enter(self, headers: Headers, cookies: dict[str, str]) -> bool:
        """Whether the token was shown, or none is needed."""
        if self.token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.is_token(given.strip()):
            return True
        return hmac.compare_digest(cookies.get(COOKIE, "").encode(), self.cookie.encode())


class Guard:
    """Stands before the application."""

    def __init__(
        self, app: ASGIApp, access: Access, limits: Limits, refuse: Callable[[Request, Refused], Response]
    ) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        body = await self._read(request)
        answer = await self._check(request, body)
        if answer is not None:
            await answer(scope, receive, send_with_headers)
            return
        await self._app(scope, _replaying(body or b"", receive), send_with_headers)

    async def _read(self, request: Request) -> bytes | None:
        """The whole body; None where it is larger than allowed."""
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._limits.body:
            return None
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > self._limits.body:
                return None
        return body

    async def _check(self, request: Request, body: bytes | None) -> Response | None:
        """Why a request does not pass, as an answer; None where it does."""
        if not self._access.is_ours(request.headers.get("host", "")):
            sentence = "This server does not answer to that host name. Open it by the address that it printed."
            return self._refuse(request, Refused(421, sentence))
        if body is None:
            sentence = f"A request may have {self._limits.body:,} bytes. Send less at once."
            return self._refuse(request, Refused(413, sentence))
        if request.method in _CHANGING and (reason := self._foreign(request, body)):
            return self._refuse(request, Refused(403, reason))
        return await self._check_token(request, body)

    async def _check_token(self, request: Request, body: bytes) -> Response | None:
        access, given = self._access, request.query_params.get("token")
        if access.token is None or request.url.path.startswith("/static/"):
            return None
        if request.url.path == "/access" and request.method == "POST":
            given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if given is not None:
            if access.is_token(given):
                return self._welcome(request)
            await asyncio.sleep(_PAUSE)
            return self._refuse(request, Refused(401, "That is not the token of this server. Copy it from its output."))
        if access.may_enter(request.headers, request.cookies):
            return None
        return self._refuse(request, Refused(401, "This server asks for the token that it printed when it started."))

    def _welcome(self, request: Request) -> Response:
        """Remember the browser, and lead it to the same page without the token in its address."""
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        path = "/" if request.url.path == "/access" else "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, status_code=303)
        answer.set_cookie(COOKIE, self._access.cookie, max_age=_YEAR, httponly=True, samesite="strict")
        return answer

    def _foreign(self, request: Request, body: bytes) -> str | None:
        """Why a request that changes something is not from our own pages; None where it is."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return "This came from another site. Use the pages of this server."
        if site not in (None, "same-origin", "none"):
            return "This came from another site. Use the pages of this server."
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":  # which no other site can send without asking first
            return None
        if kind != FORM:
            return f"Send application/json, or a form ({FORM})."
        given = parse_qs(body.decode("utf-8", "replace")).get("secret", [""])[0]
        if request.url.path == "/access" or hmac.compare_digest(given.encode(), self._access.secret.encode()):
            return None
        return "This form is of another day. Go back, load the page again and repeat it."


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives the body that was read, and then whatever comes: that the reader has left."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def access_for(host: str, token: str | None, also: Iterable[str] = ()) -> Access:
    """What a server on this address asks for: on one that others can reach, a token, made where none is given."""
    named: dict[str, Any] = {"hosts": (*_LOCAL, host.strip("[]"), *also), "token": token}
    if is_local(host):
        return Access(**named)
    everywhere = host in ("0.0.0.0", "::", "")
    return Access(**{**named, "any_address": everywhere, "token": token or secrets.token_urlsafe(24)})


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
