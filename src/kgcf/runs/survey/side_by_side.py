"""How much more several threads do than one, on this machine as busy as it is now."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kgcf.runs.survey.ground import Clock


def measure_gain(work: Callable[[], object], clock: Clock) -> float:
    """How many times faster the cores do this work side by side than one after the other: from 1 to their number."""
    cores = os.cpu_count() or 1
    if cores == 1:
        return 1.0
    began = clock()
    work()
    alone = clock() - began
    with ThreadPoolExecutor(cores) as threads:
        began = clock()
        for done in [threads.submit(work) for _ in range(cores)]:
            done.result()
        together = clock() - began
    return min(float(cores), max(1.0, cores * alone / max(together, 1e-9)))
