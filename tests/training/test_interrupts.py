"""Ctrl-C at every moment of training: what is saved goes on to the same weights, and nothing that was done is lost."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from kgcf.machine.interrupts import undisturbed
from kgcf.storage import read_header
from kgcf.training.loop import Listener, Trainer
from kgcf.training.settings import TrainingSettings
from tests.training.tiny import dataset, model, step_context

# An interrupt between the opening of a file and the block that closes it leaves the closing to the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
TRACED = {"loop.py", "checkpoint.py", "interrupts.py", "storage.py"}
SETTINGS = TrainingSettings(epochs=2, batch_size=64, threads=1, learning_rate=0.02, checkpoint_seconds=0)
DATA = dataset()
Weights = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def gradients() -> Iterator[None]:
    """An interrupt in the very last line of a training may leave torch's gradients off: not for other tests."""
    yield
    torch.set_grad_enabled(True)


def trainer(path: Path, listener: Listener | None = None) -> Trainer:
    net = model(3).float()

    def validate() -> float:
        return float(sum(p.detach().double().sum() for p in net.parameters()).sigmoid())  # type: ignore[union-attr]

    return Trainer(
        step_context(net, DATA.graph), SETTINGS, validate, checkpoint=path, key="k", listener=listener or Listener()
    )


def finish(path: Path) -> Weights:
    """Train to the end, from the checkpoint where there is one."""
    going = trainer(path)
    if path.is_file():
        going.resume()
    progress = going.run()
    assert [entry["epoch"] for entry in progress.history] == [1, 2]
    assert [entry["queries"] for entry in progress.history] == [len(DATA.graph)] * 2
    return {name: p.detach().clone() for name, p in going.context.model.named_parameters()}


@contextmanager
def at_line(moment: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Act before the n-th line of the traced files; yields the count of lines."""
    count = [0]

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            count[0] += 1
            if count[0] == moment:
                act()
        return local

    def start(frame: FrameType, _: str, __: Any) -> Any:
        path = Path(frame.f_code.co_filename)
        return local if path.name in TRACED and "kgcf" in path.parts else None

    before = sys.gettrace()
    sys.settrace(start)
    try:
        yield count
    finally:
        sys.settrace(before)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard, though a shell that runs us in the background has us ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Weights]:
    """The number of lines that a training runs, and its weights."""
    folder = tmp_path_factory.mktemp("whole")
    with at_line(0, lambda: None) as count:
        trainer(folder / "counted").run()
    return count[0], finish(folder / "whole")


def same(one: Weights, two: Weights) -> bool:
    return all(torch.equal(one[name], two[name]) for name in two)


def raise_at_once() -> None:
    raise KeyboardInterrupt


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("way", "every"), [("raised", 17), ("pressed", 13)])
def test_an_interrupt_at_any_line_resumes_to_the_same_weights(
    whole: tuple[int, Weights], tmp_path: Path, way: str, every: int
) -> None:
    stop_everywhere(whole, tmp_path, way, every)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["raised", "pressed", "pressed twice"])
def test_an_interrupt_at_every_line_resumes_to_the_same_weights(
    whole: tuple[int, Weights], tmp_path: Path, way: str
) -> None:
    stop_everywhere(whole, tmp_path, way, 1)


def stop_everywhere(whole: tuple[int, Weights], folder: Path, way: str, every: int) -> None:
    """`raised`: KeyboardInterrupt out of nothing, as no signal does it; `pressed`: a real SIGINT."""
    moments = range(1, whole[0] + 1, every)
    assert len(moments) > 100
    path, lost = folder / "checkpoint", []
    for moment in moments:
        moves = Moves()

        def twice() -> None:
            press()
            press()

        act = {"raised": raise_at_once, "pressed": press, "pressed twice": twice}[way]
        with at_line(moment, act), pytest.raises(KeyboardInterrupt):
            going = trainer(path, moves)
            moves.watch(going)
            going.run()
            signal.raise_signal(signal.SIGINT)  # it came after the last line that could hear it
        saved = steps_saved(path)
        if way == "pressed" and saved != moves.count:
            lost.append((moment, saved, moves.count))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler or way == "raised"
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert same(finish(path), whole[1]), f"other weights after an interrupt at line {moment} of {whole[0]}"
        for left in folder.iterdir():
            assert left == path or left.name.startswith(".checkpoint.")  # the run folder tidies up when it is resumed
            left.unlink()
    assert lost == []


class Moves(Listener):
    """Counts the moves of Adam."""

    count = 0

    def watch(self, going: Trainer) -> None:
        """Count what this optimiser does, itself and not what is noted about it."""
        usual = going._optimiser.step

        def step() -> None:  # type: ignore[no-untyped-def, unused-ignore]
            usual()
            self.count += 1

        going._optimiser.step = step  # type: ignore[method-assign, assignment]


def steps_saved(path: Path) -> int:
    return int(read_header(path)[1]["adam_steps"]) if path.is_file() else 0


def test_a_second_ctrl_c_does_not_wait() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        press()
        done.append("went on after the first")
        press()
        done.append("and after the second")
    assert done == ["went on after the first"]
    with pytest.raises(KeyboardInterrupt), undisturbed():
        press()
        done.append("the block ends")
    assert done[-1] == "the block ends"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_at_any_line_leaves_ctrl_c_as_it_was() -> None:
    def twice() -> None:
        press()
        press()

    lines = 0
    for moment in range(1, 100):
        with at_line(moment, twice) as count, suppress(KeyboardInterrupt), undisturbed():
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if count[0] < moment:
            break
        lines = moment
    assert 8 < lines < 99


@pytest.mark.parametrize("where", ["validation", "step", "epoch"])
def test_an_interrupt_inside_what_training_calls_is_saved(
    whole: tuple[int, Weights], tmp_path: Path, where: str
) -> None:
    path = tmp_path / "checkpoint"
    going = trainer(path)

    def stop(*_: object) -> float:
        raise KeyboardInterrupt

    if where == "validation":
        going.validate = stop
    else:
        setattr(going.listener, where, stop)
    with pytest.raises(KeyboardInterrupt):
        going.run()
    assert steps_saved(path) == (1 if where == "step" else 2)
    assert same(finish(path), whole[1])
