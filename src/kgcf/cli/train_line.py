"""A `kgcf train` command as people can paste it."""

import shlex
from collections.abc import Mapping, Sequence

from kgcf.machine.devices import CPU

_DEFAULTS: dict[str, object] = {"--header": None, "--split-seed": 0, "--device": CPU}


def train_line(data: str, options: Mapping[str, object], changes: Sequence[str]) -> str:
    """The command with all options that are not at their default, and `--set` for every change."""
    words = ["kgcf", "train", data]
    for option, value in options.items():
        if value == _DEFAULTS.get(option):
            continue
        if option == "--header" and value is False:
            words.append("--no-header")
        elif isinstance(value, bool):
            words += [option] * value
        else:
            words += [option, str(value)]
    for change in changes:
        words += ["--set", change]
    return shlex.join(words)
