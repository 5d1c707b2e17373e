from __future__ import annotations

import itertools
import threading

import pytest

from tritonpy_traffic import background
from tritonpy_traffic.background import BackgroundThread


def test_tasks_run_in_order_before_the_thread_ends() -> None:
    done: list[int] = []
    thread = BackgroundThread("test")
    for number in range(100):
        thread.add(lambda number=number: done.append(number))  # type: ignore[misc]
    thread.close()
    assert done == list(range(100))


def test_a_new_task_wakes_the_thread_up() -> None:
    thread = BackgroundThread("test")
    for _ in range(20):
        done = threading.Event()
        thread.add(done.set)
        assert done.wait(30)
    thread.close()


def test_a_failing_task_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    thread = BackgroundThread("test")
    thread.add(lambda: done.append(1 // 0))
    thread.add(lambda: done.append(1))
    thread.close()
    assert done == [1]
    assert "ZeroDivisionError" in caplog.text


def test_without_tasks_no_thread_starts() -> None:
    thread = BackgroundThread("nothing to do")
    assert not any(each.name == "nothing to do" for each in threading.enumerate())
    thread.close()


def test_the_thread_pauses_in_proportion_to_its_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
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
