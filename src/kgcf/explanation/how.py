"""How an explanation is made: every choice that a user has, in one frozen object."""

from dataclasses import dataclass

from kgcf.choices import CANDIDATES
from kgcf.choices import Asked as Asked
from kgcf.choices import Attribution as Attribution
from kgcf.choices import Layers as Layers
from kgcf.choices import Weighting as Weighting


@dataclass(frozen=True)
class How:
    """What is asked, how paths are chosen, and how much is said about them.

    With `removal` the paths are those whose edges the score needs and that give it by themselves; with `gradient` or
    `integrated` those of the largest weight, which `weighting` and `layers` define.
    """

    top: int = 5  # paths shown, at most
    asked: Asked = "tail"
    attribution: Attribution = "removal"
    candidates: int = CANDIDATES  # removal: so many paths by gradient, by integrated gradient and of the shortest
    weighting: Weighting = "mean"
    layers: Layers = "own"
    seed: int = 0  # of the random control
    check: bool = True  # also the controls of the deletion check, and every subset of the paths removed
