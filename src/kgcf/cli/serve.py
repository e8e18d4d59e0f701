"""`kgcf serve RUN …`: the explorer, a web page to ask, see and judge."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kgcf.choices import CPU
from kgcf.cli.options import DeviceOption, ObservedOption
from kgcf.errors import MissingExtraError, SettingsError
from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

_SHORTEST = 8  # characters of a token that is given


def serve_command(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN…", help="Folders of runs.")] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Also serve the demonstration; trained first where there is none.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's own need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="KGCF_TOKEN", help="Ask for this; made and printed where others can reach the server."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Answer also to this host name. Repeatable.")
    ] = None,
    reviews: Annotated[Path | None, typer.Option(help="Folder for what reviewers say [default: in each run].")] = None,
    observed: ObservedOption = "all",
    device: DeviceOption = CPU,
) -> None:
    """Open the explorer: search, ask, see why, and judge what a run proposes, in a browser."""
    started = time.monotonic()
    with importing():
        try:
            from kgcf.web.guard import access_for, is_local
            from kgcf.web.server import Place, serve
        except ModuleNotFoundError as error:
            if error.name not in ("fastapi", "uvicorn", "jinja2", "starlette"):
                raise
            raise MissingExtraError("kgcf serve", "web") from error
    paths = list(runs or [])
    if demo:
        from kgcf.cli.demo import demo_run

        paths.append(demo_run())
    if not paths:
        raise SettingsError("Name the folder of a run, or open the demonstration with: kgcf serve --demo")
    if token is not None and len(token) < _SHORTEST:
        raise SettingsError(f"A token needs at least {_SHORTEST} characters; leave --token out and one is made.")
    screen = Screen(stderr=True, wrap=False)
    screen.print("Loading and warming up …", style="dim")

    def ready(address: str) -> None:
        screen.print(cell(f"Ready after {time.monotonic() - started:.1f} s: {address}", "bold"))
        if not is_local(host):
            screen.print("Whoever has this address can ask and judge. Ctrl-C stops the server.", style="dim")
        else:
            screen.print("Open it in a browser. Ctrl-C stops the server.", style="dim")

    serve(paths, Place(host, port, access_for(host, token, name or ())), ready, observed, device, reviews)
