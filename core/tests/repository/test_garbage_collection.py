from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tritonpy.repository.garbage_collection import MAX_TIME_SHARE, ThrottledCollector


class Collector:
    """Each collection takes `cost` seconds on a fake clock, `now`."""

    def __init__(self):
        self.now, self.spent, self.cost, self.count, self.young = 100.0, 0.0, 0.0, 0, 0
        self.collected = threading.Event()

    def collect(self):
        self.count += 1
        self.spent += self.cost
        self.now += self.cost
        self.collected.set()

    def collect_young(self):
        self.young += 1


@pytest.fixture
def collector():
    return Collector()


@pytest.fixture
def throttled(collector):
    made = ThrottledCollector(
        collector.collect, collector.collect_young, lambda: collector.now, lambda: collector.spent
    )
    yield made
    made.close()


def pending(throttled):
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [timer for timer in timers if getattr(timer.function, "__self__", None) is throttled]


def test_after_a_pause_it_collects_immediately(throttled, collector):
    collector.cost = 0.01
    throttled.collect()
    collector.now += 0.01 / MAX_TIME_SHARE
    throttled.collect()
    assert collector.count == 2


def test_calls_during_a_pause_share_one_collection_at_its_end(throttled, collector, monkeypatch):
    all_called = threading.Event()

    class Timer(threading.Timer):
        """Starts only after all calls."""

        def run(self):
            assert all_called.wait(10)
            super().run()

    monkeypatch.setattr(threading, "Timer", Timer)
    collector.cost = 0.001
    throttled.collect()
    collector.collected.clear()
    for _ in range(3):
        throttled.collect()
    assert collector.count == 1
    assert len(pending(throttled)) == 1
    all_called.set()
    assert collector.collected.wait(10)
    assert collector.count == 2


def test_young_objects_are_collected_immediately_during_a_pause(throttled, collector):
    collector.cost = 0.01
    throttled.collect()
    assert (collector.count, collector.young) == (1, 0)
    for _ in range(3):
        throttled.collect()
    assert (collector.count, collector.young) == (1, 3)


def test_short_lived_cycles_are_freed_during_a_pause():
    class Cycle:
        def __init__(self):
            self.itself = self

    throttled = ThrottledCollector(lambda: None, clock=lambda: 100.0, thread_time=iter((0.0, 1.0)).__next__)
    throttled.collect()  # a long pause begins
    enabled = gc.isenabled()
    gc.disable()
    try:
        freed = weakref.ref(Cycle())
        assert freed() is not None
        throttled.collect()
        assert freed() is None
    finally:
        throttled.close()
        if enabled:
            gc.enable()


def test_the_pause_is_proportional_to_the_collection_time(throttled, collector):
    for cost in (1.0, 0.5):
        collector.cost = cost
        throttled.collect()
        throttled.collect()
        (timer,) = pending(throttled)
        assert timer.interval == pytest.approx(cost / MAX_TIME_SHARE)
        throttled.close()
        timer.join(10)
        collector.now += cost / MAX_TIME_SHARE
    assert collector.count == 2


def test_a_call_during_a_collection_causes_another_one(collector):
    collector.cost = 0.001

    def collect():
        if not collector.count:
            collector.collect()
            throttled.collect()  # no pause is set yet during the first collection
        else:
            collector.collect()

    throttled = ThrottledCollector(collect, collector.collect_young, lambda: collector.now, lambda: collector.spent)
    throttled.collect()
    assert collector.count == 2


def test_a_closed_collector_cancels_its_scheduled_collection(throttled, collector):
    collector.cost = 1.0
    throttled.collect()
    throttled.collect()
    (timer,) = pending(throttled)
    throttled.close()
    timer.join(10)
    assert collector.count == 1
