"""What a short look at a run should tell: where, on what, how it was trained, how good it is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kgcf.runs.run import Run


def short_look(run: "Run") -> dict[str, str]:
    """What a short look at the run should tell."""
    facts = run.folder.facts() if run.folder.file("run.json").is_file() else {}
    history = facts.get("history")
    method = "sigmoid of the logit"
    if run.calibration is not None:
        method = f"{run.calibration.calibration.method}, fitted to validation"
    found = {
        "folder": str(run.folder.path),
        "data": run.data.summary,
        "model": f"{run.settings.encoder.layers} layers, seed {run.settings.training.seed}",
    }
    if run.settings.baseline is not None:
        found["model"] = f"{run.settings.baseline.model}, seed {run.settings.training.seed}"
    elif "preset" in facts:
        found["model"] = f"{facts['preset']}, {found['model']}"
    if isinstance(history, dict) and len(run.data.valid):
        best = f"{history['best_validation_mrr']:.4f} after epoch {history['best_epoch']}"
        found["validation MRR"] = best
    if run.ensemble is not None:
        found["blend of"] = ", ".join(run.ensemble.names)
    if run.recall is not None:
        found["memory"] = f"rank {run.settings.memory.rank}, weight {run.recall.blend.common:g} beside the paths"
    return found | {"probabilities": method}


def model_title(run: "Run") -> str:
    """What results call the model."""
    if run.settings.baseline is not None:
        return run.settings.baseline.model
    return f"kgcf ({run.folder.facts()['preset']})"
