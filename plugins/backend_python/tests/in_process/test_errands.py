from __future__ import annotations

import threading

import pytest

from tritonpy_backend_python.in_process.errands import Errands


def test_errands_run_in_their_order_in_another_thread() -> None:
    errands, found = Errands("m_0"), list[str]()
    errands.begin()
    errands.begin()
    for number in range(3):
        errands.add(lambda number=number: found.append(f"{number} {threading.current_thread().name}"))
    errands.end()
    assert found == [f"{number} m_0-errands" for number in range(3)]
    assert not any(thread.name == "m_0-errands" for thread in threading.enumerate())


def test_what_comes_before_the_beginning_waits_for_it() -> None:
    errands, done = Errands("m_0"), threading.Event()
    errands.add(done.set)
    errands.end()
    assert not done.is_set()
    errands.begin()
    errands.end()
    assert done.is_set()


def test_one_that_fails_does_not_stop_the_next(caplog: pytest.LogCaptureFixture) -> None:
    errands, done = Errands("m_0"), threading.Event()
    errands.begin()
    errands.add(lambda: 1 / 0)
    errands.add(done.set)
    errands.end()
    assert done.is_set()
    assert "m_0 failed to clean up" in caplog.text


def test_the_end_may_come_twice() -> None:
    errands = Errands("m_0")
    errands.begin()
    errands.end()
    errands.end()
