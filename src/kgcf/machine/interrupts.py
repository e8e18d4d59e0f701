"""What Ctrl-C does: quiet while we start and end, a KeyboardInterrupt while a command works, a wait where two things
belong together. Imports nothing large.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130  # what shells report of a command that Ctrl-C ended


def quiet_interrupts() -> None:
    """From here on, Ctrl-C ends the process at once: there is nothing to finish or to save."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if our parent has us ignore it
        signal.signal(signal.SIGINT, stop)


def plain_interrupts() -> None:
    """From here on, Ctrl-C is a KeyboardInterrupt, so that a command can save its work."""
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop(_number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    """Say that we stopped, and do, whatever the interpreter is in the middle of."""
    os.write(2, b"Stopped.\n")
    os._exit(STOPPED)


@contextmanager
def importing() -> Iterator[None]:
    """Around the imports with which a command begins: Ctrl-C is quiet there, since nothing has to be saved yet.

    Python's search for garbage is off, too: modules stay until the process ends, so that looking through the many
    objects of the large libraries again and again, then and later and at the end, finds nothing and costs a second.
    """
    quiet_interrupts()
    collected, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if collected:
            gc.enable()
        plain_interrupts()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; a second one does not wait.

    Only the main thread hears signals; in another one, and where Ctrl-C is ignored, nothing is changed.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            signal.signal(signal.SIGINT, usual)  # here, since this may be outside the `try` below
            usual(number, frame)
        waiting.append(number)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if waiting:
        usual(signal.SIGINT, None)
