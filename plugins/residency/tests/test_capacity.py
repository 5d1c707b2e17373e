from __future__ import annotations

import threading

import pytest

from tritonpy.repository import InsufficientCapacity, LoadDeadline
from tritonpy_residency.capacity import MemoryCapacity
from tritonpy_residency.capacity_errors import DemandExceeded
from tritonpy_residency.eviction import ResidentModel
from tritonpy_residency.reservations import MemoryReservations
from tritonpy_residency.sizes import MemoryLimits


class FakeServer:
    """Loaded models of fixed sizes; all are idle except those in `busy`."""

    def __init__(self, total: int) -> None:
        self.reservations = MemoryReservations(MemoryLimits(total))
        self.busy: set[str] = set()
        self.pinned: set[str] = set()
        self.evicted: list[str] = []
        self.capacity = MemoryCapacity(self.reservations, self.residents, self.evict, 3.0)
        self.reports: list[str] = []

    def residents(self):
        return [
            ResidentModel(
                key, reservations_of_model[0].sizes, place, key not in self.busy, key in self.pinned
            )
            for place, (key, reservations_of_model) in enumerate(self.reservations.active().items())
        ]

    def evict(self, key):
        if key in self.busy:
            return False
        (reservation,) = self.reservations.active()[key]
        self.evicted.append(key)
        reservation.begin_unload()
        reservation.close()
        return True

    def load(self, key, size, deadline=None):
        return self.capacity.reserve(key, {"cpu": size}, deadline)

    def deadline(self, wait_s=20.0, waiting_models=(), is_needed=lambda: True):
        return LoadDeadline(wait_s, is_needed, lambda: waiting_models, self.reports.append)


def in_a_thread(call):
    """Start a call on a thread; return its future."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


def wait_for(condition):
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("the condition was never true")


def test_only_as_many_least_recently_used_models_as_needed_are_evicted():
    server = FakeServer(10)
    for key in "abc":
        server.load(key, 3)
    server.load("d", 5)
    assert server.evicted == ["a", "b"]
    assert server.reservations.used() == {"cpu": 8}


def test_a_demand_that_can_never_fit_is_rejected_immediately():
    server = FakeServer(10)
    server.load("a", 6)
    server.pinned.add("a")
    with pytest.raises(
        InsufficientCapacity,
        match="it needs 5 B, and the memory budget is 10 B, of which 6 B are held",
    ) as refused:
        server.load("b", 5, server.deadline())
    assert refused.value.retry_after_s == 3.0
    assert server.evicted == []


def test_a_load_without_deadline_is_rejected_while_models_are_in_use():
    server = FakeServer(10)
    server.load("a", 6)
    server.busy.add("a")
    with pytest.raises(InsufficientCapacity):
        server.load("b", 5)


def test_a_load_with_a_deadline_waits_for_idle_models_and_reports_why():
    server = FakeServer(10)
    server.load("a", 6)
    server.busy.add("a")
    waiting = in_a_thread(lambda: server.load("b", 5, server.deadline()))
    wait_for(lambda: server.reports)
    assert server.capacity.waiting == 1
    server.busy.clear()
    assert waiting.result(20).key == "b"
    assert "of which 6 B are held" in server.reports[0]
    assert server.capacity.waiting == 0


def test_a_load_that_would_wait_for_its_own_callers_is_rejected_immediately():
    server = FakeServer(10)
    server.load("a", 6)
    server.busy.add("a")
    with pytest.raises(InsufficientCapacity):
        server.load("b", 5, server.deadline(waiting_models=["a"]))


def test_a_load_that_is_not_needed_any_more_stops_waiting():
    server = FakeServer(10)
    server.load("a", 6)
    server.busy.add("a")
    with pytest.raises(InsufficientCapacity):
        server.load("b", 5, server.deadline(is_needed=lambda: False))


def test_a_blocked_load_is_overtaken_until_it_is_urgent():
    server = FakeServer(10)
    server.load("a", 6)
    server.busy.add("a")
    deadline = server.deadline()
    large = in_a_thread(lambda: server.load("large", 10, deadline))
    wait_for(lambda: server.reports)
    assert server.load("small", 2, server.deadline()).key == "small"
    object.__setattr__(deadline, "since", deadline.since - 10)
    with pytest.raises(InsufficientCapacity):
        server.load("other", 2, server.deadline(wait_s=0.05))
    server.busy.clear()
    assert large.result(20).key == "large"


def test_a_larger_model_than_estimated_causes_evictions_or_is_rejected():
    server = FakeServer(10)
    server.load("a", 4)
    reservation = server.load("b", 4)
    server.capacity.adjust(reservation, {"cpu": 8})
    assert server.evicted == ["a"]
    with pytest.raises(
        DemandExceeded, match="it holds 11 B, which is too much: the memory budget is 10 B"
    ):
        server.capacity.adjust(reservation, {"cpu": 11})


def test_growth_of_a_loaded_model_causes_evictions():
    server = FakeServer(10)
    first = server.load("a", 4)
    server.load("b", 4)
    server.reservations.change(first, {"cpu": 7})
    assert server.capacity.evict_excess() == ""
    assert server.reservations.used() == {"cpu": 4}
    assert server.capacity.evict_excess() == ""
    assert server.evicted == ["a"]


def test_growth_without_evictable_models_is_reported():
    server = FakeServer(10)
    reservation = server.load("a", 4)
    server.busy.add("a")
    server.reservations.change(reservation, {"cpu": 12})
    assert "the memory budget is 10 B, of which 12 B are held" in server.capacity.evict_excess()


def test_a_reload_never_evicts_the_version_that_it_replaces():
    server = FakeServer(10)
    server.load("a", 6)
    with pytest.raises(InsufficientCapacity):
        server.load("a", 6)
    assert server.evicted == []


def test_concurrent_loads_never_exceed_the_limit():
    server = FakeServer(10)
    loads = [
        in_a_thread(lambda n=n: server.load(f"m{n}", 1 + n % 4, server.deadline()))
        for n in range(40)
    ]
    for load in loads:
        load.result(20)
    assert server.reservations.highest[""] <= 10
