from __future__ import annotations

import threading
from collections import deque

import pytest

from tritonpy_backend_openvino.request_pool import InferRequestPool

LATER = object()


class Request:
    """An infer request that is complete when the test calls `end`.

    With a `result`, it is complete immediately.
    """

    def __init__(self, result):
        self.result = result
        self.running = 0
        self._over = threading.Event()
        self._error = None

    def start_async(self):
        assert not self.running, "it was started while it ran"
        self.running = 1
        self._over.clear()
        if self.result is not LATER:
            self.end(self.result)

    def wait(self):
        self._over.wait()
        self.running = 0
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def end(self, error=None):
        self._error = error or self._error
        self._over.set()


def nothing(_request):
    """Set no tensors."""


class Seen:
    """Records finished requests in order."""

    def __init__(self):
        self.errors = deque()
        self._count = threading.Semaphore(0)

    def __call__(self, error):
        self.errors.append(error)
        self._count.release()

    def wait(self, count):
        for _ in range(count):
            assert self._count.acquire(timeout=60)
        return list(self.errors)


@pytest.fixture
def make():
    made = []

    def build(count):
        requests = [Request(LATER) for _ in range(count)]
        made.append((InferRequestPool(requests, "m_0"), requests))
        return made[-1]

    yield build
    for runs, requests in made:
        for request in requests:
            request.end()
        runs.close()


def test_a_single_request_runs_on_the_calling_thread(make):
    runs, [request] = make(1)
    threads, filled = [], []
    for error in (None, RuntimeError("broken"), None):
        request.result = error
        runs.run(filled.append, lambda error: threads.append((threading.current_thread(), error)))
        assert threads.pop() == (threading.main_thread(), error)
    assert filled == [request] * 3


def test_several_run_at_once_and_end_in_any_order(make):
    runs, requests = make(3)
    seen, order = Seen(), []
    for number in range(2):
        runs.run(nothing, lambda error, number=number: (order.append(number), seen(error)))
    assert [request.running for request in requests] == [1, 1, 0]
    requests[1].end()
    seen.wait(1)
    assert order == [1]
    requests[0].end()
    assert seen.wait(1) == [None, None]


def test_the_caller_waits_while_all_run(make):
    runs, requests = make(2)
    seen, returned = Seen(), threading.Event()
    runs.run(nothing, seen)

    def second():
        runs.run(nothing, seen)
        returned.set()

    thread = threading.Thread(target=second)
    thread.start()
    requests[0].end()  # the second call is blocked until now
    assert returned.wait(60)
    thread.join()
    assert requests[1].running == 1
    requests[1].end()
    seen.wait(2)


def test_a_failure_reaches_its_batch_and_the_request_stays_usable(make):
    runs, requests = make(2)
    seen = Seen()
    runs.run(nothing, seen)
    requests[0].end(RuntimeError("broken"))
    assert [str(error) for error in seen.wait(1)] == ["broken"]
    for _ in range(4):
        chosen = []
        runs.run(chosen.append, seen)
        chosen[0].end()
        assert seen.wait(1)[-1] is None


def test_a_fill_error_is_raised_and_the_request_stays_free(make):
    runs, requests = make(2)

    def refuse(_request):
        raise ValueError("wrong shape")

    for _ in range(3):
        with pytest.raises(ValueError, match="wrong shape"):
            runs.run(refuse, pytest.fail)
    seen = Seen()
    runs.run(nothing, seen)
    requests[0].end()
    assert seen.wait(1) == [None]


def test_close_waits_for_running_requests_and_may_be_repeated(make):
    runs, requests = make(2)
    seen, closed = Seen(), threading.Event()
    runs.run(nothing, seen)
    thread = threading.Thread(target=lambda: (runs.close(), closed.set()))
    thread.start()
    assert not closed.is_set()
    requests[0].end()
    assert closed.wait(60)
    thread.join()
    assert list(seen.errors) == [None]
    runs.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("m_0 request")]
