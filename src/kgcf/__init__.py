"""kgcf completes knowledge graphs, explains every answer and backs it with counterfactual evidence."""

__version__ = "0.1.0"
