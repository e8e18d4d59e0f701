"""The server: a port that is ours from the start, runs loaded and warm, then requests."""

import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn

from kgcf.choices import Observed
from kgcf.errors import SettingsError
from kgcf.web.application import make_application
from kgcf.web.guard import Access
from kgcf.web.limits import LIMITS
from kgcf.web.served_run import open_runs

Say = Callable[[str], None]
_IDLE = 30  # seconds that a connection may be silent
_LAST = 3  # seconds for requests under way when the server is stopped


@dataclass(frozen=True)
class Place:
    """Where a server listens, and who may ask."""

    host: str
    port: int
    access: Access

    def address(self, port: int) -> str:
        """What to open in a browser; with the token, where one is asked for."""
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)
        host = f"[{shown}]" if ":" in shown else shown
        token = "" if self.access.token is None else f"?token={quote(self.access.token, safe='')}"
        return f"http://{host}:{port}/{token}"


def serve(
    paths: Sequence[Path],
    place: Place,
    say: Say,
    observed: Observed = "all",
    device: str = "cpu",
    reviews: Path | None = None,
) -> None:
    """Serve runs until somebody stops it; `say` hears when it is ready."""
    with closing(listen(place.host, place.port)) as port:
        runs = open_runs(paths, observed, device, reviews)
        for served in runs.values():
            served.warm()
        config = uvicorn.Config(
            make_application(runs, place.access),
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=LIMITS.connections,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_LAST,
        )
        say(place.address(port.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[port])


def listen(host: str, port: int) -> socket.socket:
    """Take a port; refused with a sentence where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that answers leave at once
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host.strip("[]"), port))
        taken.listen(128)  # who comes while the runs are loaded waits
    except (OSError, OverflowError) as error:
        taken.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose another --port or --host."
        ) from error
    return taken
