from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tritonpy.repository.sweeping import SHARE, Sweeping


class Collector:
    """Each collection spends `cost` seconds; `now` is what the clock shows."""

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
def sweeping(collector):
    made = Sweeping(collector.collect, collector.collect_young, lambda: collector.now, lambda: collector.spent)
    yield made
    made.close()


def pending(sweeping):
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [timer for timer in timers if getattr(timer.function, "__self__", None) is sweeping]


def test_after_a_rest_it_collects_at_once(sweeping, collector):
    collector.cost = 0.01
    sweeping.sweep()
    collector.now += 0.01 / SHARE
    sweeping.sweep()
    assert collector.count == 2


def test_who_asks_before_is_served_later_and_all_of_them_by_one_collection(sweeping, collector, monkeypatch):
    all_have_asked = threading.Event()

    class Timer(threading.Timer):
        """Does not begin before all have asked."""

        def run(self):
            assert all_have_asked.wait(10)
            super().run()

    monkeypatch.setattr(threading, "Timer", Timer)
    collector.cost = 0.001
    sweeping.sweep()
    collector.collected.clear()
    for _ in range(3):
        sweeping.sweep()
    assert collector.count == 1
    assert len(pending(sweeping)) == 1
    all_have_asked.set()
    assert collector.collected.wait(10)
    assert collector.count == 2


def test_the_young_are_collected_at_once_while_it_rests(sweeping, collector):
    collector.cost = 0.01
    sweeping.sweep()
    assert (collector.count, collector.young) == (1, 0)
    for _ in range(3):
        sweeping.sweep()
    assert (collector.count, collector.young) == (1, 3)


def test_what_came_and_went_while_it_rests_does_not_stay():
    class Circle:
        def __init__(self):
            self.itself = self

    sweeping = Sweeping(lambda: None, clock=lambda: 100.0, spent=iter((0.0, 1.0)).__next__)
    sweeping.sweep()  # rests for long from here on
    enabled = gc.isenabled()
    gc.disable()
    try:
        gone = weakref.ref(Circle())
        assert gone() is not None
        sweeping.sweep()
        assert gone() is None
    finally:
        sweeping.close()
        if enabled:
            gc.enable()


def test_the_longer_a_collection_takes_the_longer_it_rests(sweeping, collector):
    for cost in (1.0, 0.5):
        collector.cost = cost
        sweeping.sweep()
        sweeping.sweep()
        (timer,) = pending(sweeping)
        assert timer.interval == pytest.approx(cost / SHARE)
        sweeping.close()
        timer.join(10)
        collector.now += cost / SHARE
    assert collector.count == 2


def test_whoever_asks_during_a_collection_gets_another(collector):
    collector.cost = 0.001

    def collect():
        if not collector.count:
            collector.collect()
            sweeping.sweep()  # finds no rest yet: the collections do not overlap in this thread
        else:
            collector.collect()

    sweeping = Sweeping(collect, collector.collect_young, lambda: collector.now, lambda: collector.spent)
    sweeping.sweep()
    assert collector.count == 2


def test_a_closed_one_collects_nothing_more(sweeping, collector):
    collector.cost = 1.0
    sweeping.sweep()
    sweeping.sweep()
    (timer,) = pending(sweeping)
    sweeping.close()
    timer.join(10)
    assert collector.count == 1
