from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

from core.tests.toys.doubler import Doubler
from core.tests.toys.heavy import Heavy
from tritonpy.api.backend import Backend
from tritonpy.api.engine import MemoryUsage
from tritonpy.runners.memory_report import MemoryReport, tells_memory
from tritonpy.runners.thread_pool import ThreadPool
from tritonpy.testing.witness import PATIENCE_S

LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.test"), {})
NEVER = 1 << 62


def cpu(size: int) -> list[MemoryUsage]:
    return [MemoryUsage("CPU", 0, size)]


class Asked:
    """Answers 1, 2, 3, …; each answer waits until somebody lets it go."""

    def __init__(self, *, free: bool = False) -> None:
        self.count = 0
        self.threads: list[threading.Thread] = []
        self.gate = threading.Semaphore(1000 if free else 0)
        self.arrived = threading.Semaphore(0)

    def __call__(self) -> list[MemoryUsage]:
        self.threads.append(threading.current_thread())
        self.arrived.release()
        assert self.gate.acquire(timeout=PATIENCE_S)
        self.count += 1
        return cpu(self.count)


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    pool = ThreadPool("test", 2)
    yield pool
    pool.close()


def test_nothing_is_known_before_somebody_was_asked(threads: ThreadPool) -> None:
    asked = Asked()
    report = MemoryReport(asked, LOG, threads, NEVER)
    asked.gate.release()
    report.renew()
    assert report.latest() == cpu(1)
    assert asked.threads == [threading.current_thread()]


def test_figures_that_are_not_old_are_not_asked_for(threads: ThreadPool) -> None:
    asked = Asked(free=True)
    report = MemoryReport(asked, LOG, threads, NEVER)
    report.renew()
    assert [report.latest() for _ in range(10)] == [cpu(1)] * 10
    assert asked.count == 1


def test_who_wants_old_figures_has_them_at_once_and_newer_ones_are_asked_for_meanwhile(threads: ThreadPool) -> None:
    asked = Asked()
    report = MemoryReport(asked, LOG, threads, 0)
    assert [report.latest() for _ in range(5)] == [[]] * 5
    assert asked.arrived.acquire(timeout=PATIENCE_S)
    assert (len(asked.threads), report.latest()) == (1, [])  # one question at a time, however many want to know
    asked.gate.release()
    threads.close()
    assert report.latest() == cpu(1)
    asked.gate.release(10)


def test_who_renews_waits_for_the_question_that_is_open(threads: ThreadPool) -> None:
    asked = Asked()
    report = MemoryReport(asked, LOG, threads, 0)
    report.latest()
    assert asked.arrived.acquire(timeout=PATIENCE_S)
    renewing = threading.Thread(target=report.renew)
    renewing.start()
    asked.gate.release(2)
    renewing.join(PATIENCE_S)
    assert report._figures == cpu(2)


def test_an_error_leaves_the_figures_as_they_were_and_is_logged_once(
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
        report.renew()
        assert report.latest() == cpu(3)
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"its memory usage is not known: ValueError: {text}" for text in ("no", "why", "no")]


def test_what_no_backend_may_say_is_an_error_too(threads: ThreadPool, caplog: pytest.LogCaptureFixture) -> None:
    MemoryReport(lambda: [("CPU", 0, 1)], LOG, threads).renew()  # type: ignore[list-item]
    assert "its memory usage is not known: AttributeError" in caplog.text


def test_a_backend_that_says_nothing_is_not_asked() -> None:
    class Shares(Backend):
        @classmethod
        def shared_memory_usage(cls, shared: object) -> Sequence[MemoryUsage]:
            return ()

    assert [tells_memory(kind) for kind in (Backend, Doubler, Heavy, Shares)] == [False, False, True, True]
