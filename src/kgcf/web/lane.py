"""One thread per model that computes for those who ask, one after another; nobody waits who has left.

The engine keeps workspaces that two threads must not share, and a second thread would not make it faster. A request
whose reader has gone is taken out of the line, or stops where the work next looks up (`Ticket.attend`).
"""

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from kgcf.errors import KgcfError

T = TypeVar("T")
Attend = Callable[[], None]  # called between two pieces of work; raises `Abandoned` where nobody waits any more
_LOOK = 0.05  # seconds between two looks whether the reader is still there


class Abandoned(Exception):
    """The reader has left, or the time is over: the rest is not computed."""


class BusyError(KgcfError):
    """Too many requests are in line."""


class TooLongError(KgcfError):
    """A request took longer than it may."""


class Ticket(Generic[T]):
    """A place in the line."""

    def __init__(self, work: Callable[[Attend], T]) -> None:
        self.result: Future[T] = Future()
        self._work = work
        self._left = threading.Event()

    def abandon(self) -> None:
        """Nobody waits for this any more."""
        self._left.set()

    def attend(self) -> None:
        """Look up from the work: go on only if somebody waits for it."""
        if self._left.is_set():
            raise Abandoned

    def run(self) -> None:
        """Do the work, in the thread of the lane."""
        try:
            self.attend()
            self.result.set_result(self._work(self.attend))
        except BaseException as error:  # raised again where it is waited for
            self.result.set_exception(error)


class Lane:
    """A line of requests before one computing thread."""

    def __init__(self, name: str, waiting: int) -> None:
        self._line: queue.Queue[Ticket[Any] | None] = queue.Queue(maxsize=waiting)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def join(self, work: Callable[[Attend], T]) -> Ticket[T]:
        """Stand in line; refused where it is long."""
        ticket = Ticket(work)
        try:
            self._line.put_nowait(ticket)
        except queue.Full:
            raise BusyError("Too many questions are waiting. Try again in a moment.") from None
        return ticket

    def close(self) -> None:
        """Stop after what is in line."""
        self._line.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (ticket := self._line.get()) is not None:
            ticket.run()


async def wait_for(ticket: Ticket[T], has_left: Callable[[], Awaitable[bool]], seconds: float) -> T:
    """The result of a ticket; given up when the reader has left or the time is over."""
    until = time.monotonic() + seconds
    result = asyncio.wrap_future(ticket.result)
    try:
        while not (await asyncio.wait({result}, timeout=_LOOK))[0]:
            if await has_left():
                raise Abandoned
            if time.monotonic() > until:
                raise TooLongError(f"This took longer than {seconds:g} seconds and was stopped. Ask for less at once.")
        return result.result()
    finally:
        if not result.done():
            ticket.abandon()
            result.add_done_callback(_look_at)  # so that nobody warns of an error that was never looked at


def _look_at(result: "asyncio.Future[Any]") -> None:
    if not result.cancelled():
        result.exception()
