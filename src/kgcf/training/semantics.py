"""Which settings make sense where every entity has a state, reached or not (`encoder.semantics = nbfnet`)."""

from kgcf.errors import SettingsError
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.training.objective import ObjectiveSettings
from kgcf.training.settings import TrainingSettings


def check_everybody(encoder: EncoderSettings, objective: ObjectiveSettings, training: TrainingSettings) -> None:
    """Refuse what tells the reached from the unreached, or lets a plan leave edges out."""
    needed = {
        "encoder.context=none (or decoder, layers)": encoder.context == "unreached",
        "training.skip_unreached=false": training.skip_unreached,
        "objective.negatives_from=all": objective.negatives_from == "reached",
        "training.fan_in=none": training.fan_in is not None,
    }
    missing = [change for change, wanted in needed.items() if wanted]
    if missing:
        raise SettingsError(
            "With encoder.semantics = nbfnet every entity has a state, as if a path reached it, made of all edges. "
            f"Set also: {', '.join(missing)}."
        )
