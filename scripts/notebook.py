"""Run the code of docs/notebook.ipynb, without Jupyter, and keep what it shows: `python scripts/notebook.py`."""

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"
Output = dict[str, Any]  # as the notebook format has it


def read_notebook(path: Path = NOTEBOOK) -> dict[str, Any]:
    """The notebook as it is stored."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run_cells(notebook: dict[str, Any]) -> Iterator[list[Output]]:
    """The outputs of every code cell, all run in one namespace and in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), start=1):
        yield _outputs("".join(cell["source"]), names, count)


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that have code, in their order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _outputs(code: str, names: dict[str, Any], count: int) -> list[Output]:
    """What a cell prints, and the value of its last expression as text and as HTML."""
    body = ast.parse(code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), f"<cell {count}>", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), names)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run everything in an empty folder, and write the notebook with its new outputs."""
    notebook = read_notebook()
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for count, (cell, outputs) in enumerate(zip(code_cells(notebook), run_cells(notebook), strict=True), start=1):
            cell["outputs"], cell["execution_count"] = outputs, count
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    main()
