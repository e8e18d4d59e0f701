"""The command line: `kgcf COMMAND …`. User errors are sentences and a non-zero exit, never a traceback."""

import sys

import typer
from rich.console import Console

from kgcf import __version__
from kgcf.cli.compare import compare_command
from kgcf.cli.complete import complete_command
from kgcf.cli.counterfactuals import counterfactuals
from kgcf.cli.datasets import datasets_app
from kgcf.cli.demo import demo
from kgcf.cli.evaluate import evaluate_command
from kgcf.cli.explain import explain_command
from kgcf.cli.predict import predict_command
from kgcf.cli.train import resume_command, train_command
from kgcf.cli.tune import tune_command
from kgcf.errors import KgcfError
from kgcf.storage import DISK, cannot_write

app = typer.Typer(
    name="kgcf",
    help="Complete knowledge graphs on a CPU, explain every answer, back it with counterfactual evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(datasets_app, name="datasets")
app.command("train")(train_command)
app.command("resume")(resume_command)
app.command("evaluate")(evaluate_command)
app.command("compare")(compare_command)
app.command("predict")(predict_command)
app.command("complete")(complete_command)
app.command("explain")(explain_command)
app.command("counterfactuals")(counterfactuals)
app.command("tune")(tune_command)
app.command("demo")(demo)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Complete knowledge graphs on a CPU, explain every answer, back it with counterfactual evidence."""
    if version:
        typer.echo(f"kgcf {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; print what the user can act on, and let real bugs show their traceback."""
    try:
        app()
    except KgcfError as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]Error:[/] {_escaped(str(error))}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:  # of the disk, where no file is to blame: standard output, a temporary folder
        if error.errno not in DISK:
            raise
        Console(stderr=True, soft_wrap=True).print(
            f"[bold red]Error:[/] {_escaped(cannot_write(error.filename or 'the output', error))}", highlight=False
        )
        sys.exit(1)


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")
