from __future__ import annotations

import itertools
import threading

import pytest

from tritonpy_traffic import background
from tritonpy_traffic.background import BackgroundThread


def test_tasks_are_done_in_their_order_before_it_ends() -> None:
    done: list[int] = []
    thread = BackgroundThread("test")
    for number in range(100):
        thread.add(lambda number=number: done.append(number))  # type: ignore[misc]
    thread.close()
    assert done == list(range(100))


def test_it_wakes_for_what_comes_while_it_sleeps() -> None:
    thread = BackgroundThread("test")
    for _ in range(20):
        done = threading.Event()
        thread.add(done.set)
        assert done.wait(30)
    thread.close()


def test_one_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    thread = BackgroundThread("test")
    thread.add(lambda: done.append(1 // 0))
    thread.add(lambda: done.append(1))
    thread.close()
    assert done == [1]
    assert "ZeroDivisionError" in caplog.text


def test_one_that_had_nothing_to_do_has_no_thread() -> None:
    thread = BackgroundThread("nothing to do")
    assert not any(each.name == "nothing to do" for each in threading.enumerate())
    thread.close()


def test_it_takes_a_small_part_of_one_core_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    thread = BackgroundThread("test")
    clock = itertools.count(0, 0.5)
    monkeypatch.setattr(background.time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(thread._closed, "wait", paused.append)
    for _ in range(5):
        done = threading.Event()
        thread.add(done.set)
        assert done.wait(30)
    thread.close()
    assert set(paused) == {0.5 * 19}
