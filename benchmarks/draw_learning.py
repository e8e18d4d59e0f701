"""Learning curves of result files, as `kgcf compare --plot` draws those of run folders that are still there.

Run: python benchmarks/draw_learning.py results/fb15k-237-nbfnet.json results/fb15k-237-default.json
         --picture docs/fb15k-237.png
"""

import argparse
import json
from pathlib import Path

from kgcf.config import Settings
from kgcf.runs.comparison import RunRecord
from kgcf.runs.plots import draw_learning


def read_result(path: Path) -> RunRecord:
    """What a result file says about the training that it comes from."""
    result = json.loads(path.read_text(encoding="utf-8"))
    protocol = result["protocol"]
    return RunRecord(
        name=path.stem,
        dataset=protocol["dataset"],
        preset=protocol["preset"],
        settings=Settings.model_validate(protocol["settings"]),
        epochs=protocol["training"]["epochs"],
        test={"mrr": result["mrr"]},
    )


def main() -> None:
    """Draw one line for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--picture", type=Path, required=True)
    given = parser.parse_args()
    draw_learning([read_result(path) for path in given.results], given.picture)


if __name__ == "__main__":
    main()
