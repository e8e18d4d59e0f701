"""The command line: `kgcf COMMAND …`. User errors are sentences and a non-zero exit, never a traceback."""

import sys
from typing import NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from kgcf import __version__
from kgcf.cli.blend import blend_command
from kgcf.cli.compare import compare_command
from kgcf.cli.complete import complete_command
from kgcf.cli.counterfactuals import counterfactuals
from kgcf.cli.datasets import datasets_app
from kgcf.cli.demo import demo
from kgcf.cli.evaluate import evaluate_command
from kgcf.cli.explain import HOW_TO_READ, explain_command
from kgcf.cli.models import models_command
from kgcf.cli.predict import predict_command
from kgcf.cli.reproduce import reproduce_command
from kgcf.cli.rules import rules_command
from kgcf.cli.serve import serve_command
from kgcf.cli.streams import prepare_streams
from kgcf.cli.train import resume_command, train_command
from kgcf.cli.tune import tune_command
from kgcf.errors import KgcfError
from kgcf.machine.interrupts import STOPPED, plain_interrupts, quiet_interrupts
from kgcf.screen import Screen, inert


class Commands(TyperGroup):
    """The commands, where Ctrl-C means: stop, say so, exit with 130."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the chosen command."""
        plain_interrupts()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            quiet_interrupts()
            Screen(stderr=True).print("Stopped.")
            sys.exit(STOPPED)


app = typer.Typer(
    name="kgcf",
    cls=Commands,
    help="Complete knowledge graphs on a CPU, explain every answer, back it with counterfactual evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(datasets_app, name="datasets")
app.command("train")(train_command)
app.command("resume")(resume_command)
app.command("evaluate")(evaluate_command)
app.command("blend")(blend_command)
app.command("compare")(compare_command)
app.command("models")(models_command)
app.command("predict")(predict_command)
app.command("complete")(complete_command)
app.command("explain", epilog=HOW_TO_READ)(explain_command)
app.command("rules")(rules_command)
app.command("counterfactuals")(counterfactuals)
app.command("tune")(tune_command)
app.command("serve")(serve_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Complete knowledge graphs on a CPU, explain every answer, back it with counterfactual evidence."""
    if version:
        Screen().print(f"kgcf {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; print what the user can act on, and let real bugs show their traceback."""
    prepare_streams()
    try:
        _run()
    finally:
        quiet_interrupts()  # while the interpreter takes itself down


def _run() -> None:
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except KgcfError as error:
        _complain(str(error))
    except OSError as error:  # of the disk, where no file is to blame: standard output, a temporary folder
        from kgcf.storage import DISK, cannot_write

        if error.errno not in DISK:
            raise
        _complain(cannot_write(error.filename or "the output", error))


def _complain(message: str) -> NoReturn:
    text = Text.assemble(("Error:", "bold red"), " ", inert(message, keep="\n"))
    Screen(stderr=True, wrap=False).print(text)
    sys.exit(1)
