"""What users choose between, by name: shared by the command line and the library. Imports nothing large.

`kgcf --help` lists these without torch, numba or Arrow, which take seconds to import.
"""

from typing import Literal

Observed = Literal["all", "train"]  # what an answer may see: everything that was given, or the train split
Scope = Literal["seen", "all"]  # entities that may stand on a side of a relation: seen there, or all
OutputFormat = Literal["tsv", "csv", "parquet", "jsonl", "nt"]

Asked = Literal["tail", "head"]  # the part of a triple that an explanation takes as the answer
Weighting = Literal["mean", "sum"]  # a path weighs the mean or the sum of its edges
Layers = Literal["own", "all"]  # an edge counts with its importance in the layer of its step, or in all layers
EdgeImportance = Literal["gradient", "integrated"]  # of an edge: a gradient, or one integrated from no edges
Attribution = Literal["removal", "gradient", "integrated"]  # paths by what happens without them, or by their edges
CANDIDATES = 12  # paths of each kind that an explanation by removal tries
PATHS = 3  # shown for each answer of a prediction that is explained

MethodName = Literal[
    "core_number", "core_component", "collapsed_core", "louvain", "shuffled_core", "file"
]  # what a treatment compares
Psi = Literal["frequency", "uniform", "inverse"]  # weight of a relation in the entity space
Candidates = Literal["observed", "all"]  # pairs that may be substitutes: those that a train triple links, or all
RemoveRule = Literal["auto", "triple", "pair"]  # what a question about a triple of the graph hides

REPORT = "report"  # what `kgcf reproduce` takes beside its targets: write of all that is finished
CPU = "cpu"  # the device that is always there
