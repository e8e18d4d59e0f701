"""How many layers a model gets where nobody asked for a number: enough to reach the answers."""

from collections.abc import Sequence

ENOUGH = 0.6  # of what the deepest reaches: with so much the wanted depth is left alone
NEARLY_ALL = 0.95  # of what the deepest reaches: where more is needed, the least depth with so much is taken
CLEARLY_MORE = 0.05  # of all answers: a smaller gain is not worth a layer


def choose_depth(shares: Sequence[float], wanted: int) -> int:
    """The wanted depth, or the least that reaches nearly all that can be reached, where the wanted one misses most.

    `shares` are the shares of answers within reach of 1, 2, … layers; no depth beyond them is ever chosen.
    """
    most = shares[-1]
    if wanted >= len(shares):
        return wanted
    reached = shares[wanted - 1]
    if reached >= ENOUGH * most or most - reached < CLEARLY_MORE:
        return wanted
    return next(depth for depth, share in enumerate(shares, start=1) if share >= NEARLY_ALL * most)
