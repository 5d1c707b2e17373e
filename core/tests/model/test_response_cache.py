from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from core.tests.toys.caches import PATIENCE_S, Broken, Distant, Kept
from tritonpy.api.cache import Cache
from tritonpy.api.options import NoOptions
from tritonpy.model import response_cache
from tritonpy.model.cache_breaker import FAILURES
from tritonpy.model.response_cache import INLINE_BYTES, ResponseCache
from tritonpy.runners.timer import Timer
from tritonpy.types import Tensor

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


def test_what_was_inserted_is_found() -> None:
    with wrapped(Kept) as cache:
        assert cache.lookup(KEY) is None
        cache.insert(KEY, [OUT])
        found = cache.lookup(KEY)
        assert found is not None
        assert found.outputs[0].numpy().tolist() == [1]


def test_small_things_are_done_where_the_request_is_unless_the_cache_waits() -> None:
    with wrapped(Kept) as near, wrapped(Distant) as far:
        assert (near.inline(INLINE_BYTES), near.inline(INLINE_BYTES + 1), far.inline(0)) == (True, False, False)


def test_failures_are_misses_and_then_the_cache_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    with wrapped(Broken) as cache:
        for _ in range(FAILURES):
            assert cache.works()
            assert cache.lookup(KEY) is None
        assert not cache.works()
    assert "the response cache 'toy' failed, look-up: ConnectionError: nobody is there" in caplog.text


def test_a_cache_that_is_back_is_told_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level("INFO")
    with wrapped(Kept) as cache:
        with monkeypatch.context() as down:
            down.setattr(Kept, "lookup", Broken.lookup)
            for _ in range(FAILURES):
                cache.lookup(KEY)
        for _ in range(2):
            cache.lookup(KEY)
    assert caplog.messages[1:] == ["the response cache 'toy' works again"]


def test_a_line_tells_how_many_are_left_out(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10**12
    monkeypatch.setattr(response_cache, "now_ns", lambda: now)
    with wrapped(Broken) as cache:
        for _ in range(4):
            cache.insert(KEY, [OUT])
        assert len(caplog.records) == 1
        now += response_cache.LINE_NS
        cache.insert(KEY, [OUT])
    assert caplog.messages[1].endswith("nobody is there (3 such lines before it are left out)")


def test_broken_parameters_of_a_kept_answer_are_a_miss(caplog: pytest.LogCaptureFixture) -> None:
    with wrapped(Kept) as cache:
        data = np.frombuffer(b"{", np.uint8)
        cache.insert(KEY, [OUT, Tensor("", "UINT8", data.shape, data)])
        assert cache.lookup(KEY) is None
    assert "DecodeError" in caplog.text


def test_an_insertion_from_elsewhere_tells_what_it_took() -> None:
    took: list[int] = []
    with wrapped(Distant) as cache:
        cache.insert_later(KEY, [OUT], took.append)
        Distant.made.wait_for_insertions(1)
    assert len(took) == 1
    assert took[0] > 0


def test_insertions_that_would_wait_with_too_much_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "LATER_BYTES", 8)
    with wrapped(Distant) as cache:
        held = threading.Event()
        for _ in range(4):
            cache.run(lambda: held.wait(PATIENCE_S) and None, lambda: False)
        for number in range(5):  # of 4 bytes each
            cache.insert_later(bytes([number]), [OUT], lambda _ns: None)
        held.set()
        Distant.made.wait_for_insertions(2)
    assert sorted(Distant.made.entries) == [b"\x00", b"\x01"]


def test_one_insertion_that_is_larger_than_all_may_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cache, "LATER_BYTES", 2)
    with wrapped(Distant) as cache:
        cache.insert_later(KEY, [OUT], lambda _ns: None)
        Distant.made.wait_for_insertions(1)


class Soon(Distant):
    deadline_ms = 1


def test_a_deadline_that_passes_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    late, held = threading.Event(), threading.Event()
    with wrapped(Soon) as cache:
        for _ in range(FAILURES):
            late.clear()
            cache.run(lambda: held.wait(PATIENCE_S) and None, lambda: late.set() or True)
            assert late.wait(PATIENCE_S)
        while cache.works():  # the timer tells right after it called `late`
            pass
        held.set()
    assert "no answer after 1 ms" in caplog.text


def test_a_near_cache_has_no_deadline() -> None:
    done = threading.Event()
    with wrapped(Kept) as cache:
        cache.run(done.set, lambda: pytest.fail("a near cache has no deadline"))
        assert done.wait(PATIENCE_S)


def test_after_the_end_a_task_runs_in_the_caller() -> None:
    with wrapped(Kept) as cache:
        pass
    done: list[str] = []
    cache.run(lambda: done.append(threading.current_thread().name), lambda: False)
    assert done == [threading.current_thread().name]


class Unfriendly(Kept):
    def metrics(self) -> list[object]:
        raise RuntimeError("no metrics today")

    def close(self) -> None:
        raise RuntimeError("no end today")


def test_metrics_and_an_end_that_fail_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with wrapped(Unfriendly) as cache:
        assert cache.metrics() == ()
    assert "no metrics today" in caplog.text
    assert "no end today" in caplog.text
