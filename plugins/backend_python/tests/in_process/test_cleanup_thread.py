from __future__ import annotations

import threading

import pytest

from tritonpy_backend_python.in_process.cleanup_thread import CleanupThread


def test_functions_run_in_order_in_another_thread() -> None:
    cleanup, found = CleanupThread("m_0"), list[str]()
    cleanup.begin()
    cleanup.begin()
    for number in range(3):
        cleanup.add(
            lambda number=number: found.append(f"{number} {threading.current_thread().name}")
        )
    cleanup.end()
    assert found == [f"{number} m_0-cleanup" for number in range(3)]
    assert not any(thread.name == "m_0-cleanup" for thread in threading.enumerate())


def test_functions_added_before_begin_wait_for_it() -> None:
    cleanup, done = CleanupThread("m_0"), threading.Event()
    cleanup.add(done.set)
    cleanup.end()
    assert not done.is_set()
    cleanup.begin()
    cleanup.end()
    assert done.is_set()


def test_an_exception_does_not_stop_the_next_function(caplog: pytest.LogCaptureFixture) -> None:
    cleanup, done = CleanupThread("m_0"), threading.Event()
    cleanup.begin()
    cleanup.add(lambda: 1 / 0)
    cleanup.add(done.set)
    cleanup.end()
    assert done.is_set()
    assert "m_0 failed to clean up" in caplog.text


def test_end_may_be_called_twice() -> None:
    cleanup = CleanupThread("m_0")
    cleanup.begin()
    cleanup.end()
    cleanup.end()
