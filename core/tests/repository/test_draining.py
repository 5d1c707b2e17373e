from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tritonpy.repository import draining
from tritonpy.repository.draining import MAX_TIME_SHARE, Drainer, DrainJob, ThrottledCollector
from tritonpy.repository.model_table import ModelTable


class Model:
    """A model whose `close` waits until the test drains it."""

    def __init__(self, version=1, waiting=0, executing=0, error=None):
        self.name, self.version, self.in_flight = "m", version, waiting + executing
        self.executing = executing
        self.drained, self.members = threading.Event(), {}
        self.error = error
        self.release()

    def release(self):
        if not self.in_flight:
            self.drained.set()

    def close(self):
        assert self.drained.wait(10)
        if self.error is not None:
            raise self.error

    def fail_waiting(self):
        self.in_flight = self.executing
        self.release()


class Agents:
    def __init__(self):
        self.calls = []

    def notify(self, action):
        self.calls.append(action.value)


@pytest.fixture
def prepared():
    agents, released = Agents(), []
    return SimpleNamespace(
        agents=agents,
        release=lambda: released.append(True),
        released=released,
        reservation=None,
        begin_unload=lambda: None,
    )


@pytest.fixture
def drain(prepared):
    table, unloaded = ModelTable(), []
    under_test = Drainer(table, unloaded.append)

    def start(*models):
        table.swap("m", {model.version: model for model in models})
        under_test.drain(DrainJob("m", table.swap("m", {}), prepared))
        return under_test

    start.table, start.unloaded = table, unloaded
    yield start
    assert not [thread for thread in threading.enumerate() if thread.name == "unload m"]


def test_versions_are_closed_and_then_their_files_are_released(drain, prepared):
    models = [Model(1), Model(2)]
    assert drain(*models).wait(10)
    assert [(line.version, line.state, line.reason) for line in drain.table.index("m")] == [
        ("1", "UNAVAILABLE", "unloaded"),
        ("2", "UNAVAILABLE", "unloaded"),
    ]
    assert drain.unloaded == models
    assert prepared.agents.calls == ["UNLOAD", "UNLOAD_COMPLETE"]
    assert prepared.released == [True]


def test_draining_returns_immediately_and_requests_in_flight_finish(drain, prepared):
    model = Model(executing=1)
    under_test = drain(model)
    assert [line.state for line in drain.table.index("m")] == ["UNLOADING"]
    assert prepared.released == []
    model.drained.set()
    assert under_test.wait(10)


def test_waiting_requests_are_failed_after_the_timeout(drain, prepared):
    assert not drain(Model(1, waiting=2)).wait(0)
    assert prepared.released == [True]


def test_executions_get_a_grace_period_after_the_timeout(drain, monkeypatch):
    monkeypatch.setattr(draining, "GRACE_S", 0.01)
    model = Model(executing=1)
    under_test = drain(model)
    assert not under_test.wait(0)
    model.drained.set()
    assert under_test.wait(10)


@pytest.mark.parametrize("broken", ["close", "release"])
def test_a_failure_to_close_is_logged_and_the_rest_is_freed(drain, prepared, caplog, broken):
    if broken == "close":
        model = Model(error=OSError("stuck"))
    else:
        model = Model()
        prepared.release = lambda: 1 / 0
    assert drain(model, Model(2)).wait(10)
    assert (
        "version 1 of 'm' failed to close"
        if broken == "close"
        else "the files of 'm' were not released"
    ) in caplog.text
    assert len(drain.unloaded) == 2
    assert prepared.agents.calls == ["UNLOAD", "UNLOAD_COMPLETE"]


def test_without_jobs_there_is_no_wait():
    assert Drainer(ModelTable(), lambda model: None).wait(0)


def test_a_member_is_closed_after_its_ensemble_in_any_order(prepared):
    table, unloaded = ModelTable(), []
    under_test = Drainer(table, unloaded.append)
    member, ensemble = Model(), Model(executing=1)
    ensemble.members = {("m", 1): member}
    for name, model in (("m", member), ("e", ensemble)):
        table.swap(name, {1: model})
        table.swap(name, {})
    under_test.drain(DrainJob("m", [member], prepared), DrainJob("e", [ensemble]))
    assert (unloaded, prepared.released) == ([], [])
    ensemble.drained.set()
    assert under_test.wait(10)
    assert sorted(unloaded, key=id) == sorted([member, ensemble], key=id)
    assert prepared.released == [True]


def test_jobs_without_prepared_model_release_no_files(prepared):
    table = ModelTable()
    table.swap("m", {1: Model()})
    under_test = Drainer(table, lambda model: None)
    under_test.drain(DrainJob("m", table.swap("m", {})))
    assert under_test.wait(10)
    assert (prepared.agents.calls, prepared.released) == ([], [])


def test_many_idle_models_are_closed_by_a_few_threads_and_busy_ones_delay_no_other(
    prepared, monkeypatch
):
    monkeypatch.setattr(draining, "THREADS", 2)
    busy = [Model(executing=1) for _ in range(3)]
    idle = [Model() for _ in range(40)]
    table, unloaded, all_idle = ModelTable(), [], threading.Event()

    def unload(model):
        unloaded.append(model)
        if len(unloaded) == len(idle):
            all_idle.set()

    under_test = Drainer(table, unload)
    jobs = []
    for number, model in enumerate([*busy, *idle]):
        table.swap(f"m{number}", {1: model})
        jobs.append(DrainJob(f"m{number}", table.swap(f"m{number}", {})))
    under_test.drain(*jobs)
    assert len(under_test._threads) <= 5
    assert all_idle.wait(10)
    assert set(unloaded) == set(idle)
    assert not under_test._join(0)
    for model in busy:
        model.drained.set()
    assert under_test.wait(10)
    assert len(unloaded) == 43


@pytest.mark.parametrize("count", [3, 60])
def test_nested_ensembles_are_closed_before_their_members(count, monkeypatch):
    monkeypatch.setattr(draining, "THREADS", 2)
    table, unloaded = ModelTable(), []
    under_test = Drainer(table, unloaded.append)
    models = [Model() for _ in range(count)]
    for model in models:
        model.drained.clear()
        model.close = model.drained.set
    for below, above in pairwise(models):
        above.members = {("m", 1): below}
    for number, model in enumerate(models):
        table.swap(f"m{number}", {1: model})
    under_test.drain(
        *(DrainJob(f"m{number}", table.swap(f"m{number}", {})) for number in range(count))
    )
    assert under_test.wait(10)
    assert len(unloaded) == count
    assert not under_test._ensembles


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

    throttled = ThrottledCollector(
        lambda: None, clock=lambda: 100.0, thread_time=iter((0.0, 1.0)).__next__
    )
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

    throttled = ThrottledCollector(
        collect, collector.collect_young, lambda: collector.now, lambda: collector.spent
    )
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
