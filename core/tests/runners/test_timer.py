from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from tritonpy.runners.timer import Timer
from tritonpy_types.clock import now_ns

FAR = 1 << 62


@pytest.fixture
def timer() -> Iterator[Timer]:
    timer = Timer()
    yield timer
    timer.stop()


def test_callbacks_run_in_the_order_of_their_times(timer: Timer) -> None:
    busy, done, seen = threading.Event(), threading.Event(), []
    timer.at(0, lambda: busy.wait(10))
    timer.at(3, done.set)
    timer.at(2, lambda: seen.append("second"))
    timer.at(1, lambda: seen.append("first"))
    busy.set()
    assert done.wait(10)
    assert seen == ["first", "second"]


def test_no_callback_runs_before_its_time(timer: Timer) -> None:
    done, seen, due = threading.Event(), [], now_ns() + 5_000_000
    timer.at(due, lambda: (seen.append(now_ns()), done.set()))
    assert done.wait(10)
    assert seen[0] >= due


@pytest.mark.parametrize("far", [FAR, 1 << 80])
def test_an_earlier_time_wakes_the_thread(timer: Timer, far: int) -> None:
    done = threading.Event()
    timer.at(far, lambda: None)
    timer.at(now_ns(), done.set)
    assert done.wait(10)


def test_a_callback_may_schedule_another(timer: Timer) -> None:
    done = threading.Event()
    timer.at(0, lambda: timer.at(0, done.set))
    assert done.wait(10)


def test_one_that_raises_is_logged_and_the_others_run(
    timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR, "tritonpy.timer"):
        timer.at(0, fail)
        timer.at(1, done.set)
        assert done.wait(10)
    assert "a timer callback failed" in caplog.text


def test_stopping_discards_callbacks_and_ends_the_thread() -> None:
    timer, seen = Timer(), []
    timer.at(FAR, lambda: seen.append(1))
    timer.stop()
    timer.at(0, lambda: seen.append(2))
    timer.stop()
    assert seen == []
    assert "timer" not in {thread.name for thread in threading.enumerate()}


def test_an_unused_timer_has_no_thread() -> None:
    timer = Timer()
    timer.stop()
    assert timer._thread is None
