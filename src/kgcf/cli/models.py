"""`kgcf models`: everything that `kgcf train --model` takes."""

from kgcf.cli.options import JsonOption
from kgcf.cli.tables import Column, DataTable, show_table
from kgcf.machine.interrupts import importing
from kgcf.screen import print_json

_FAMILIES = {"floor": "counting", "paths": "paths", "embeddings": "embedding", "gnn": "graph network"}
_OURS = (
    ("kgcf", "paths", "this method: --preset default, fast, paper", "Chang et al. 2023"),
    ("nbfnet", "paths", "KGCF without its counterfactual parts: --preset nbfnet", "Zhu et al. 2021"),
)


def models_command(as_json: JsonOption = False) -> None:
    """List the models that can be trained, each with one line and its paper."""
    with importing():
        from kgcf.baselines.catalogue import BASELINES
    rows = [*_OURS]
    rows += [(entry.name, _FAMILIES[entry.family], entry.line, entry.paper) for entry in BASELINES.values()]
    titles = ("model", "kind", "in one line", "paper")
    if as_json:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
        return
    caption = "kgcf train DATA --model NAME. Embeddings and graph networks need: pip install 'kgcf[baselines]'"
    table = DataTable([Column(title, folds=title == "in one line") for title in titles], caption=caption)
    table.rows += [list(row) for row in rows]
    show_table(table)
