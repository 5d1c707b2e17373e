from __future__ import annotations

import threading
import time

import pytest

from core.tests.toys.waiting import wait_until
from tritonpy.repository.load_attempts import LoadAttempt, LoadThreads, ModelLock, load_many
from tritonpy_types.errors import Internal, InvalidArgument, Unavailable

HANGS = threading.Event.wait


@pytest.fixture
def release():
    """Return an event that ends hanging loads; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def in_thread(call, *arguments):
    """Start a call; return its thread and the list for its error."""
    errors = []

    def run():
        try:
            call(*arguments)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


class TestLoadAttempt:
    def test_a_committed_load_cannot_be_canceled(self):
        attempt = LoadAttempt("m")
        with attempt.committing():
            pass
        assert not attempt.cancel(Internal("too late"))
        assert not attempt.cancellation.canceled

    def test_a_canceled_load_cannot_be_committed_and_records_nothing(self):
        attempt, written = LoadAttempt("m"), []
        attempt.record(lambda: written.append(1))
        assert attempt.cancel(Internal("unloaded"))
        attempt.record(lambda: written.append(2))
        with pytest.raises(Internal, match="unloaded"), attempt.committing():
            written.append(3)
        assert written == [1]

    def test_a_callback_is_called_immediately_if_the_load_is_already_canceled(self):
        attempt, called = LoadAttempt("m"), []
        attempt.cancel(Internal("unloaded"))
        with attempt.cancellation.calling(lambda: called.append(True)):
            assert called == [True]


class TestModelLock:
    def test_an_unload_precedes_waiting_loads_and_cancels_the_lock_holder(self):
        lock, order = ModelLock(), []
        first, second = LoadAttempt("m"), LoadAttempt("m")
        canceled = threading.Event()

        def load(attempt, name, until):
            with lock.loading(attempt):
                until.wait(10)
                order.append(name)

        def unload():
            with lock.unloading(Internal("unloaded"), "unloaded"):
                order.append("unload")

        with first.cancellation.calling(canceled.set):
            threads = [in_thread(load, first, "first", canceled)[0]]
            wait_until(lambda: lock.attempt is first)
            done = threading.Event()
            done.set()
            threads.append(in_thread(load, second, "second", done)[0])
            wait_until(lambda: len(lock._waiting) == 1)
            threads.append(in_thread(unload)[0])
            for thread in threads:
                thread.join(10)
        assert order == ["first", "unload", "second"]
        assert second.error is None


class TestLoadThreads:
    def test_a_caller_is_released_when_the_load_is_canceled_though_its_thread_hangs(self, release):
        threads, attempt = LoadThreads(), LoadAttempt("m")
        caller, errors = in_thread(threads.run, attempt, lambda: HANGS(release, 30))
        wait_until(lambda: threads._running)
        attempt.cancel(Internal("unloaded"))
        caller.join(10)
        assert [str(error) for error in errors] == ["unloaded"]

    def test_a_canceled_load_does_not_count_against_the_limit(self, release):
        threads, hanging = LoadThreads(max_concurrent=1), LoadAttempt("hanging")
        in_thread(threads.run, hanging, lambda: HANGS(release, 30))
        wait_until(lambda: threads._running)
        other, errors = in_thread(threads.run, LoadAttempt("other"), lambda: None)
        hanging.cancel(Internal("unloaded"))
        other.join(10)
        assert (other.is_alive(), errors) == (False, [])

    def test_a_slow_load_does_not_count_against_the_limit(self, release, caplog):
        caplog.set_level("INFO", "tritonpy")
        threads = LoadThreads(max_concurrent=1, slow_s=0.05)
        in_thread(threads.run, LoadAttempt("hanging"), lambda: HANGS(release, 30))
        wait_until(lambda: threads._running)
        assert threads.run(LoadAttempt("other"), lambda: 7) == 7
        wait_until(lambda: "still loading 'hanging' (0 s)" in caplog.messages)

    def test_too_many_hanging_loads_are_an_error_with_a_remedy(self, release):
        threads = LoadThreads(max_threads=2, slow_s=0.01)
        for name in "ab":
            in_thread(threads.run, LoadAttempt(name), lambda: HANGS(release, 30))
        wait_until(lambda: len(threads._running) == 2)
        with pytest.raises(
            Unavailable, match=r"2 loads are in progress or stuck. Unload the models that hang"
        ):
            threads.run(LoadAttempt("c"), lambda: None)

    def test_a_load_that_exceeds_the_timeout_fails_and_reports_a_stuck_thread(
        self, release, monkeypatch
    ):
        monkeypatch.setattr("tritonpy.repository.load_attempts._CANCEL_GRACE_S", 0.01)
        with pytest.raises(InvalidArgument) as failed:
            LoadThreads(0.05).run(LoadAttempt("m"), lambda: HANGS(release, 30))
        assert failed.value.message.startswith(
            "load failed for model 'm': the load took longer than the limit of 0.05 s (--model-load-timeout-secs)"
        )
        assert "The thread that loads it cannot be stopped" in failed.value.message

    def test_a_load_that_ends_when_it_is_canceled_leaves_no_stuck_thread(self):
        attempt, killed = LoadAttempt("m"), threading.Event()

        def work():
            with attempt.cancellation.calling(killed.set):
                HANGS(killed, 30)

        with pytest.raises(InvalidArgument) as failed:
            LoadThreads(0.05).run(attempt, work)
        assert "cannot be stopped" not in failed.value.message

    def test_the_end_of_a_canceled_load_is_logged(self, release, caplog):
        caplog.set_level("INFO", "tritonpy")
        threads, attempt = LoadThreads(), LoadAttempt("m")
        caller, _ = in_thread(threads.run, attempt, lambda: HANGS(release, 30))
        wait_until(lambda: threads._running)
        attempt.cancel(Internal("unloaded"))
        caller.join(10)
        release.set()
        wait_until(
            lambda: any(
                line.startswith("the canceled load of 'm' ended after") for line in caplog.messages
            )
        )


class TestLoadBatch:
    def test_the_concurrency_is_limited_and_all_calls_are_awaited(self):
        lock, loading, most, done = threading.Lock(), [], [], []

        def load(key):
            with lock:
                loading.append(key)
                most.append(len(loading))
            time.sleep(0.002)
            with lock:
                loading.remove(key)
                done.append(key)

        load_many(load, [str(number) for number in range(20)], 3, 60.0, wait_for_all=True)
        assert len(done) == 20
        assert max(most) <= 3

    def test_slow_calls_are_not_awaited_and_others_continue(self, release):
        done = []

        def load(key):
            if key.startswith("hangs"):
                HANGS(release, 30)
            done.append(key)

        load_many(load, ["hangs1", "hangs2", "quick"], 1, 0.02, wait_for_all=False)
        assert done == ["quick"]

    def test_an_exception_is_propagated(self):
        def load(key):
            raise ValueError(key)

        with pytest.raises(ValueError, match="m"):
            load_many(load, ["m"], 1, 60.0, wait_for_all=True)
