from __future__ import annotations

import logging
import threading

import pytest

from tritonpy_residency import memory_budget
from tritonpy_residency.memory_budget import MemoryMonitor


class MemoryCapacity:
    def __init__(self, *responses):
        self._results = list(responses)
        self.done = threading.Event()

    def evict_excess(self):
        if not self._results:
            self.done.set()
            return ""
        response = self._results.pop(0)
        if isinstance(response, Exception):
            raise response
        return response


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(memory_budget, "MONITOR_INTERVAL_S", 0.001)


def looked(capacity):
    watch = MemoryMonitor(capacity)
    watch.start()
    watch.start()
    assert capacity.done.wait(10)
    watch.stop()
    watch.start()
    assert "memory budget" not in [thread.name for thread in threading.enumerate()]


def test_a_problem_is_logged_once_until_it_is_solved(caplog):
    with caplog.at_level(logging.WARNING):
        looked(MemoryCapacity("too much", "too much", "", "too much"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_an_exception_is_logged_and_the_checks_continue(caplog):
    looked(MemoryCapacity(RuntimeError("oh"), ""))
    assert "check of the memory budget failed" in caplog.text
