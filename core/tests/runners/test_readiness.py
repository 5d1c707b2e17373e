from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy.runners.readiness import ReadinessCheck

PATIENCE_S = 10
LOG = logging.LoggerAdapter(logging.getLogger("tritonpy.test"), {})


def check(ask: Callable[[], bool], limit_s: float = PATIENCE_S) -> ReadinessCheck:
    return ReadinessCheck(ask, LOG, limit_s)


@pytest.mark.parametrize("says", [True, False])
def test_the_answer_is_what_the_model_says(says: bool) -> None:
    assert check(lambda: says).answer() is says


@pytest.mark.parametrize("error", [ValueError("no weights"), TimeoutError("no weights"), SystemExit("no weights")])
def test_a_check_that_raises_says_no(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    def ask() -> bool:
        raise error

    assert not check(ask).answer()
    assert "is_ready() failed: no weights" in caplog.text


def test_silence_means_no_and_holds_one_thread_however_often_somebody_asks(caplog: pytest.LogCaptureFixture) -> None:
    speak, asked = threading.Event(), []

    def ask() -> bool:
        asked.append(threading.current_thread())
        return speak.wait(PATIENCE_S)

    silent = check(ask, 0.01)
    assert [silent.answer() for _ in range(3)] == [False] * 3
    assert "no answer to is_ready() in 0.01 s" in caplog.text
    assert len(asked) == 1
    speak.set()
    asked[0].join(PATIENCE_S)
    assert check(ask).answer()


def test_who_asks_meanwhile_gets_the_same_answer() -> None:
    speak, questions = threading.Event(), []

    def ask() -> bool:
        questions.append(1)
        return speak.wait(PATIENCE_S)

    shared = check(ask)
    together = threading.Barrier(4)

    def join() -> bool:
        together.wait(PATIENCE_S)
        return shared.answer()

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(join) for _ in range(3)]
        together.wait(PATIENCE_S)
        speak.set()
        assert all(answer.result(PATIENCE_S) for answer in answers)
    assert 1 <= len(questions) <= 3


def test_each_question_gets_an_answer_of_its_own_time() -> None:
    answers = iter([False, True])
    later = check(lambda: next(answers))
    assert [later.answer(), later.answer()] == [False, True]
