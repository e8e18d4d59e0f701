"""What the command line imports before it knows that it needs it: nothing large."""

import subprocess
import sys

import pytest

LARGE = ("torch", "numba", "scipy", "pandas", "pyarrow", "matplotlib", "numpy", "optuna", "gensim", "safetensors")
WEB = ("fastapi", "starlette", "uvicorn", "jinja2")
ASKED = """
import sys
from kgcf.__main__ import main
sys.argv[1:] = sys.argv[2:]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write(" ".join(name for name in sys.modules if "." not in name or name.startswith("kgcf.")))
"""
HELP = [
    [name, "--help"]
    for name in (
        "train",
        "resume",
        "evaluate",
        "compare",
        "predict",
        "complete",
        "explain",
        "rules",
        "counterfactuals",
        "tune",
        "serve",
        "demo",
        "reproduce",
    )
]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["datasets", "ls"],
        ["datasets", "ls", "--json"],
        ["datasets", "info", "--help"],
        ["models"],
        *HELP,
    ],
    ids=" ".join,
)
def test_help_and_lists_import_nothing_large(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, "kgcf", *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    imported = set(done.stderr.split())
    assert "kgcf.cli" in imported
    assert not imported & {*LARGE, *WEB}
    assert not {name for name in imported if name.startswith(("kgcf.runs.", "kgcf.model.", "kgcf.pipeline"))}
    assert done.stdout


def test_predicting_imports_neither_what_fits_nor_what_draws() -> None:
    code = """
import sys, kgcf.runs.run, kgcf.cli.answer_tables
from kgcf.data.vocabulary import Vocabulary
from kgcf.config import Settings
from kgcf.runs.model_file import new_model
Vocabulary(["a", "b"], {"a": "Ann"}).id("Ann")
new_model(Settings(), 2)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    unused = {"matplotlib", "pandas", "optuna", "gensim", "sklearn", "sympy"}
    unused |= {"scipy.special", "scipy.optimize", "scipy.sparse", "scipy.stats"}
    ours = {"kgcf.explanation.explainer", "kgcf.data.reader", "kgcf.runs.other_graphs"}
    assert not (unused | ours) & set(done.stdout.split())
