from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from core.tests.toys.caches import WAIT_S, Broken, MemoryCache, SlowCache
from tritonpy.api.cache import Cache
from tritonpy.model import response_cache
from tritonpy.model.response_cache import (
    FAILURES,
    MAX_INLINE_BYTES,
    PAUSE_NS,
    CacheThreads,
    CircuitBreaker,
    ResponseCache,
)
from tritonpy.runners.timer import Timer
from tritonpy_config.options import NoOptions
from tritonpy_types import Tensor

KEY = bytes(32)
OUT = Tensor.from_numpy("OUT", np.array([1], np.int32))


@contextmanager
def wrapped(cache: type[Cache]) -> Iterator[ResponseCache]:
    timer = Timer()
    made = ResponseCache(cache(NoOptions()), "toy", timer)
    try:
        yield made
    finally:
        made.close()
        timer.stop()


def test_inserted_outputs_are_found() -> None:
    with wrapped(MemoryCache) as cache:
        assert cache.lookup(KEY) is None
        cache.insert(KEY, [OUT])
        found = cache.lookup(KEY)
        assert found is not None
        assert found.outputs[0].numpy().tolist() == [1]


def test_small_sizes_run_inline_unless_the_cache_blocks() -> None:
    with wrapped(MemoryCache) as near, wrapped(SlowCache) as far:
        assert (
            near.can_run_inline(MAX_INLINE_BYTES),
            near.can_run_inline(MAX_INLINE_BYTES + 1),
            far.can_run_inline(0),
        ) == (True, False, False)


def test_failures_are_misses_and_then_the_cache_is_not_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with wrapped(Broken) as cache:
        for _ in range(FAILURES):
            assert cache.is_available()
            assert cache.lookup(KEY) is None
        assert not cache.is_available()
    assert (
        "the response cache 'toy' failed, lookup: ConnectionError: the cache is down" in caplog.text
    )


def test_the_recovery_of_a_cache_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    with wrapped(MemoryCache) as cache:
        with monkeypatch.context() as down:
            down.setattr(MemoryCache, "lookup", Broken.lookup)
            for _ in range(FAILURES):
                cache.lookup(KEY)
        for _ in range(2):
            cache.lookup(KEY)
    assert caplog.messages[1:] == ["the response cache 'toy' works again"]


def test_a_log_line_counts_suppressed_ones(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**12
    monkeypatch.setattr(response_cache, "now_ns", lambda: now)
    with wrapped(Broken) as cache:
        for _ in range(4):
            cache.insert(KEY, [OUT])
        assert len(caplog.records) == 1
        now += response_cache.LOG_INTERVAL_NS
        cache.insert(KEY, [OUT])
    assert caplog.messages[1].endswith("the cache is down (3 similar lines suppressed)")


def test_invalid_parameters_of_a_stored_response_are_a_miss(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with wrapped(MemoryCache) as cache:
        data = np.frombuffer(b"{", np.uint8)
        cache.insert(KEY, [OUT, Tensor("", "UINT8", data.shape, data)])
        assert cache.lookup(KEY) is None
    assert "DecodeError" in caplog.text


def test_a_deferred_insertion_reports_its_duration() -> None:
    took: list[int] = []
    with wrapped(SlowCache) as cache:
        cache.insert_later(KEY, [OUT], took.append)
        SlowCache.made.wait_for_insertions(1)
    assert len(took) == 1
    assert took[0] > 0


def test_insertions_beyond_the_queue_limit_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "MAX_QUEUED_BYTES", 8)
    with wrapped(SlowCache) as cache:
        held = threading.Event()
        for _ in range(4):
            cache.run(lambda: held.wait(WAIT_S) and None, lambda: False)
        for number in range(5):  # 4 bytes each
            cache.insert_later(bytes([number]), [OUT], lambda _ns: None)
        held.set()
        SlowCache.made.wait_for_insertions(2)
    assert sorted(SlowCache.made.entries) == [b"\x00", b"\x01"]


def test_a_single_insertion_may_exceed_the_queue_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "MAX_QUEUED_BYTES", 2)
    with wrapped(SlowCache) as cache:
        cache.insert_later(KEY, [OUT], lambda _ns: None)
        SlowCache.made.wait_for_insertions(1)


class Soon(SlowCache):
    deadline_ms = 1


def test_a_deadline_that_passes_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    late, held = threading.Event(), threading.Event()
    with wrapped(Soon) as cache:
        for _ in range(FAILURES):
            late.clear()
            cache.run(lambda: held.wait(WAIT_S) and None, lambda: late.set() or True)
            assert late.wait(WAIT_S)
        while cache.is_available():  # the failure is recorded right after the call of `late`
            pass
        held.set()
    assert "no response after 1 ms" in caplog.text


def test_a_cache_that_does_not_block_has_no_deadline() -> None:
    done = threading.Event()
    with wrapped(MemoryCache) as cache:
        cache.run(done.set, lambda: pytest.fail("a near cache has no deadline"))
        assert done.wait(WAIT_S)


def test_after_close_a_task_runs_in_the_caller() -> None:
    with wrapped(MemoryCache) as cache:
        pass
    done: list[str] = []
    cache.run(lambda: done.append(threading.current_thread().name), lambda: False)
    assert done == [threading.current_thread().name]


class Unfriendly(MemoryCache):
    def metrics(self) -> list[object]:
        raise RuntimeError("no metrics today")

    def close(self) -> None:
        raise RuntimeError("no end today")


def test_failures_of_metrics_and_close_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with wrapped(Unfriendly) as cache:
        assert cache.metrics() == ()
    assert "no metrics today" in caplog.text
    assert "no end today" in caplog.text


def test_no_thread_exists_before_the_first_task() -> None:
    before = set(threading.enumerate())
    threads = CacheThreads(3)
    assert set(threading.enumerate()) <= before
    threads.close()


def test_tasks_run_concurrently() -> None:
    threads, barrier = CacheThreads(2), threading.Barrier(3)
    for _ in range(2):
        assert threads.run(lambda: barrier.wait(10) and None)
    barrier.wait(10)  # all three threads meet
    threads.close()
    threads.join(10)


def test_closed_threads_finish_queued_tasks_and_accept_no_more() -> None:
    threads, done, gate = CacheThreads(1), [], threading.Event()
    threads.run(lambda: gate.wait(10) and None)
    for number in range(5):
        threads.run(lambda number=number: done.append(number))
    threads.close()
    assert not threads.run(lambda: done.append(99))
    gate.set()
    threads.join(10)
    assert done == [0, 1, 2, 3, 4]
    assert not any(thread.name.startswith("response cache") for thread in threading.enumerate())


def broken() -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES):
        breaker.record_failure(0)
    return breaker


def test_calls_are_allowed_after_fewer_than_three_failures() -> None:
    breaker = CircuitBreaker()
    for _ in range(FAILURES - 1):
        breaker.record_failure(0)
    assert breaker.allows_call(0)


def test_after_three_failures_no_call_is_allowed() -> None:
    assert not any(broken().allows_call(now) for now in (0, 1, PAUSE_NS - 1))


def test_a_success_resets_the_count_of_failures() -> None:
    breaker = CircuitBreaker()
    for _ in range(5):
        breaker.record_failure(0)
        breaker.record_failure(0)
        breaker.record_success()
    assert breaker.allows_call(0)


def test_one_call_per_pause_is_allowed() -> None:
    breaker = broken()
    through = [now for now in range(0, 4 * PAUSE_NS, PAUSE_NS // 10) if breaker.allows_call(now)]
    assert through == [PAUSE_NS, 2 * PAUSE_NS, 3 * PAUSE_NS]


def test_a_successful_call_closes_the_breaker() -> None:
    breaker = broken()
    assert breaker.allows_call(PAUSE_NS)
    assert breaker.record_success()
    assert not breaker.record_success()
    assert all(breaker.allows_call(PAUSE_NS + turn) for turn in range(5))


def test_another_failure_starts_a_new_pause() -> None:
    breaker = broken()
    assert breaker.allows_call(PAUSE_NS)
    breaker.record_failure(PAUSE_NS + 5)
    assert not breaker.allows_call(2 * PAUSE_NS)
    assert breaker.allows_call(2 * PAUSE_NS + 5)
