from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy.runners.readiness import ReadinessCheck

WAIT_S = 10
LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.test"), {})


def check(ask: Callable[[], bool], limit_s: float = WAIT_S) -> ReadinessCheck:
    return ReadinessCheck(ask, LOG, limit_s)


@pytest.mark.parametrize("says", [True, False])
def test_the_result_is_that_of_the_model(says: bool) -> None:
    assert check(lambda: says).check() is says


@pytest.mark.parametrize(
    "error", [ValueError("no weights"), TimeoutError("no weights"), SystemExit("no weights")]
)
def test_a_check_that_raises_means_not_ready(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def ask() -> bool:
        raise error

    assert not check(ask).check()
    assert "is_ready() failed: no weights" in caplog.text


def test_a_hanging_check_means_not_ready_and_blocks_one_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    speak, requested = threading.Event(), []

    def ask() -> bool:
        requested.append(threading.current_thread())
        return speak.wait(WAIT_S)

    silent = check(ask, 0.01)
    assert [silent.check() for _ in range(3)] == [False] * 3
    assert "is_ready() did not respond within 0.01 s" in caplog.text
    assert len(requested) == 1
    speak.set()
    requested[0].join(WAIT_S)
    assert check(ask).check()


def test_concurrent_callers_share_one_check() -> None:
    speak, questions = threading.Event(), []

    def ask() -> bool:
        questions.append(1)
        return speak.wait(WAIT_S)

    shared = check(ask)
    together = threading.Barrier(4)

    def join() -> bool:
        together.wait(WAIT_S)
        return shared.check()

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(join) for _ in range(3)]
        together.wait(WAIT_S)
        speak.set()
        assert all(answer.result(WAIT_S) for answer in answers)
    assert 1 <= len(questions) <= 3


def test_each_later_call_runs_a_new_check() -> None:
    answers = iter([False, True])
    later = check(lambda: next(answers))
    assert [later.check(), later.check()] == [False, True]
