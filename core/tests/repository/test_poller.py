from __future__ import annotations

import threading

from tritonpy.repository.poller import Poller
from tritonpy_types.errors import Unavailable


class Script:
    """Polls with scripted results: None or an exception; `done` is set after the last one."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.done = threading.Event()

    def __call__(self):
        if not self.outcomes:
            self.done.set()
            return
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome


def run(script):
    polling = Poller(script, 0.001)
    polling.start()
    assert script.done.wait(10)
    polling.stop()
    assert "poll" not in {thread.name for thread in threading.enumerate()}


def test_it_polls_until_it_is_stopped():
    run(Script(None, None, None))


def test_a_repeated_error_is_logged_once_and_again_after_a_success(caplog):
    run(
        Script(
            Unavailable("gone"),
            Unavailable("gone"),
            None,
            Unavailable("gone"),
            Unavailable("other"),
        )
    )
    assert [record.message for record in caplog.records] == [
        f"{text}; loaded models keep serving" for text in ("gone", "gone", "other")
    ]


def test_an_unexpected_exception_is_logged_and_polling_continues(caplog):
    run(Script(ZeroDivisionError("oops"), None))
    assert "oops" in caplog.text


def test_it_polls_immediately_when_woken():
    polls = threading.Semaphore(0)
    polling = Poller(polls.release, 3600)
    polling.start()
    for _ in range(3):
        polling.wake()
        assert polls.acquire(timeout=10)
    polling.stop()


def test_a_poll_that_is_interrupted_at_the_end_is_no_error(caplog):
    running, interrupted = threading.Event(), threading.Event()

    def poll():
        running.set()
        interrupted.wait(10)
        raise Unavailable("Server exiting")

    polling = Poller(poll, 0.001)
    polling.start()
    assert running.wait(10)
    polling.finish()
    interrupted.set()
    polling.stop()
    assert caplog.records == []


def test_stopping_an_unstarted_poller_does_nothing():
    Poller(Script(), 1).stop()
