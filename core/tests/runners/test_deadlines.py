from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

from tritonpy.runners.deadlines import Deadlines
from tritonpy_types import CallbackSink, InferRequest
from tritonpy_types.clock import now_ns

FAR = 1 << 62


class ManualTimer:
    """A timer whose callbacks the test runs."""

    def __init__(self) -> None:
        self.armed: list[tuple[int, Callable[[], None]]] = []

    def at(self, when_ns: int, callback: Callable[[], None]) -> None:
        self.armed.append((when_ns, callback))

    def run(self) -> None:
        armed, self.armed = self.armed, []
        for _, callback in armed:
            callback()


def request(deadline_ns: int) -> InferRequest:
    return InferRequest("m", {}, CallbackSink(print), deadline_ns=deadline_ns)


def bench() -> tuple[ManualTimer, Deadlines]:
    timer = ManualTimer()
    return timer, Deadlines(timer)


def test_requests_are_cancelled_at_their_deadlines_only() -> None:
    timer, deadlines = bench()
    passed, far = [request(now_ns() - number) for number in range(3)], request(FAR)
    for each in (far, *passed):
        deadlines.watch(each)
    timer.run()
    assert [each.cancelled for each in passed] == [True] * 3
    assert not far.cancelled
    assert [when for when, _ in timer.armed] == [FAR]


def test_a_finished_request_is_not_cancelled() -> None:
    timer, deadlines = bench()
    answered = request(1)
    deadlines.watch(answered)
    answered.finished = True
    timer.run()
    assert not answered.cancelled
    assert timer.armed == []
    assert len(deadlines) == 0


def test_only_an_earlier_deadline_arms_the_timer_again() -> None:
    timer, deadlines = bench()
    kept = [request(FAR), request(FAR + 1), request(FAR - 1)]
    for each in kept:
        deadlines.watch(each)
    assert [when for when, _ in timer.armed] == [FAR, FAR - 1]


def test_finished_requests_leave_no_entries() -> None:
    timer, deadlines = bench()
    first = request(FAR)
    deadlines.watch(first)
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    for _ in range(10_000):
        each = request(FAR)
        deadlines.watch(each)
        each.finished = True
    assert len(deadlines) < 100
    assert len(timer.armed) == 1


def test_requests_in_flight_are_never_removed() -> None:
    timer, deadlines = bench()
    kept = [request(1) for _ in range(1000)]
    for each in kept:
        deadlines.watch(each)
    timer.run()
    assert all(each.cancelled for each in kept)


def test_many_threads_may_watch_at_once() -> None:
    timer, deadlines = bench()
    kept = [request(1) for _ in range(800)]
    threads = [
        threading.Thread(target=lambda at=at: [deadlines.watch(each) for each in kept[at::8]])
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timer.run()
    assert all(each.cancelled for each in kept)
