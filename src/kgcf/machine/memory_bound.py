"""The memory bound: one number of bytes for training, ranking, predicting, completing and explaining alike.

It says what one thread may hold at a time to compute: a plan with its states and gradients, and, for an eighth of it, a
table of scores. The graph, its treatment, the weights and the answers themselves are not counted. A question is never
divided: where a single one needs more than the bound, it takes what it needs, alone.
"""

DEFAULT_GB = 2.0
DEFAULT = DEFAULT_GB * 1e9  # bytes
_SCORE_SHARE = 1 / 8
_BYTES_PER_SCORE = 5  # the score and whether a path reaches the entity
_MOST = 512  # on dense graphs this many questions take ten seconds, and whoever waits wants to hear of them


def questions_at_once(memory: float, entity_count: int) -> int:
    """How many rows of scores of all entities fit into the share of the bound that is for them; 1 … 512."""
    fitting = int(memory * _SCORE_SHARE / (_BYTES_PER_SCORE * max(entity_count, 1)))
    return min(max(1, fitting), _MOST)
