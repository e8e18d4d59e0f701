"""Nobody waits who has left: such work is not begun, or stops where it next looks up."""

import asyncio
import threading
import time

import pytest

from kgcf.web.lane import Abandoned, Attend, BusyError, Lane, TooLongError, wait_for


async def never() -> bool:
    return False


async def at_once() -> bool:
    return True


def test_results_and_errors_come_back() -> None:
    lane = Lane("test", 4)
    assert asyncio.run(wait_for(lane.join(lambda _: 42), never, 5)) == 42
    with pytest.raises(ZeroDivisionError):
        asyncio.run(wait_for(lane.join(lambda _: 1 // 0), never, 5))
    lane.close()


def test_who_leaves_is_not_computed_to_the_end() -> None:
    lane, steps, stopped = Lane("test", 4), [], threading.Event()

    def long_work(attend: Attend) -> None:
        try:
            for step in range(1000):
                attend()
                steps.append(step)
                time.sleep(0.01)
        except Abandoned:
            stopped.set()
            raise

    with pytest.raises(Abandoned):
        asyncio.run(wait_for(lane.join(long_work), at_once, 5))
    assert stopped.wait(5)
    assert 0 < len(steps) < 500
    lane.close()


def test_who_leaves_while_waiting_is_not_computed_at_all() -> None:
    lane, go_on, begun = Lane("test", 4), threading.Event(), []
    first = lane.join(lambda _: go_on.wait(5))
    second = lane.join(lambda _: begun.append(1))
    second.abandon()
    go_on.set()
    assert first.result.result(5)
    assert isinstance(second.result.exception(5), Abandoned)
    assert begun == []
    lane.close()


def test_a_long_line_and_a_long_time_are_refused() -> None:
    lane, go_on = Lane("test", 1), threading.Event()
    begun = threading.Event()

    def hold(_: Attend) -> None:
        begun.set()
        go_on.wait(5)

    lane.join(hold)
    assert begun.wait(5)
    waiting = lane.join(hold)
    with pytest.raises(BusyError, match="Try again"):
        lane.join(lambda _: None)
    with pytest.raises(TooLongError, match="longer than 0.1 seconds"):
        asyncio.run(wait_for(waiting, never, 0.1))
    go_on.set()
    lane.close()
