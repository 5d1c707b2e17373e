from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.heavy import HeavyBackend
from tritonpy.api.backend import Backend
from tritonpy.api.engine import MemoryUsage
from tritonpy.runners.memory_report import MemoryReport, reports_memory
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy_testing.recording_sink import WAIT_S

LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.test"), {})
NEVER = 1 << 62


def cpu(size: int) -> list[MemoryUsage]:
    return [MemoryUsage("CPU", 0, size)]


class BlockingMeasure:
    """Returns 1, 2, 3, …; each call blocks until the test releases it."""

    def __init__(self, *, free: bool = False) -> None:
        self.count = 0
        self.threads: list[threading.Thread] = []
        self.gate = threading.Semaphore(1000 if free else 0)
        self.arrived = threading.Semaphore(0)

    def __call__(self) -> list[MemoryUsage]:
        self.threads.append(threading.current_thread())
        self.arrived.release()
        assert self.gate.acquire(timeout=WAIT_S)
        self.count += 1
        return cpu(self.count)


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    pool = ThreadPool("test", 2)
    yield pool
    pool.close()


def test_no_usage_is_known_before_the_first_measurement(threads: ThreadPool) -> None:
    requested = BlockingMeasure()
    report = MemoryReport(requested, LOG, threads, NEVER)
    requested.gate.release()
    report.refresh()
    assert report.latest() == cpu(1)
    assert requested.threads == [threading.current_thread()]


def test_recent_values_are_not_measured_again(threads: ThreadPool) -> None:
    requested = BlockingMeasure(free=True)
    report = MemoryReport(requested, LOG, threads, NEVER)
    report.refresh()
    assert [report.latest() for _ in range(10)] == [cpu(1)] * 10
    assert requested.count == 1


def test_old_values_are_returned_immediately_and_updated_in_the_background(
    threads: ThreadPool,
) -> None:
    requested = BlockingMeasure()
    report = MemoryReport(requested, LOG, threads, 0)
    assert [report.latest() for _ in range(5)] == [[]] * 5
    assert requested.arrived.acquire(timeout=WAIT_S)
    # One measurement at a time, however many callers there are.
    assert (len(requested.threads), report.latest()) == (1, [])
    requested.gate.release()
    threads.close()
    assert report.latest() == cpu(1)
    requested.gate.release(10)


def test_refresh_waits_for_a_running_measurement(threads: ThreadPool) -> None:
    requested = BlockingMeasure()
    report = MemoryReport(requested, LOG, threads, 0)
    report.latest()
    assert requested.arrived.acquire(timeout=WAIT_S)
    renewing = threading.Thread(target=report.refresh)
    renewing.start()
    requested.gate.release(2)
    renewing.join(WAIT_S)
    assert report._usage == cpu(2)


def test_an_error_keeps_the_values_and_is_logged_once(
    threads: ThreadPool, caplog: pytest.LogCaptureFixture
) -> None:
    errors = iter([None, "no", "no", "why", None, "no"])

    def ask() -> Sequence[MemoryUsage]:
        error = next(errors)
        if error is not None:
            raise ValueError(error)
        return cpu(3)

    report = MemoryReport(ask, LOG, threads, NEVER)
    for _ in range(6):
        report.refresh()
        assert report.latest() == cpu(3)
    reported = [record.getMessage() for record in caplog.records]
    assert reported == [
        f"its memory usage is unknown: ValueError: {text}" for text in ("no", "why", "no")
    ]


def test_an_invalid_report_of_a_backend_is_an_error_too(
    threads: ThreadPool, caplog: pytest.LogCaptureFixture
) -> None:
    MemoryReport(lambda: [("CPU", 0, 1)], LOG, threads).refresh()  # type: ignore[list-item]
    assert "its memory usage is unknown: AttributeError" in caplog.text


def test_a_backend_without_memory_methods_is_not_queried() -> None:
    class Shares(Backend):
        @classmethod
        def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
            return ()

    assert [reports_memory(kind) for kind in (Backend, Doubler, HeavyBackend, Shares)] == [
        False,
        False,
        True,
        True,
    ]
