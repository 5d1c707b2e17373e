"""The memory budget as loads use it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from functools import partial

from tritonpy.repository import LoadDeadline, LoadedModel, MemoryBudget, PreparedModel
from tritonpy_residency.capacity import MemoryCapacity
from tritonpy_residency.demand import DemandEstimator
from tritonpy_residency.reservations import ModelReservation
from tritonpy_residency.sizes import format_sizes

log = logging.getLogger("tritonpy.repository")

MONITOR_INTERVAL_S = 2.0


class ModelMemoryBudget(MemoryBudget):
    """Reserves memory before each load, and corrects the reservation after it."""

    def __init__(self, capacity: MemoryCapacity, demands: DemandEstimator) -> None:
        self.capacity = capacity
        self._demands = demands
        self._monitor = MemoryMonitor(capacity)

    def close(self) -> None:
        """Stop monitoring."""
        self._monitor.stop()

    def reserve(self, prepared: PreparedModel, deadline: LoadDeadline | None) -> None:
        """Reserve memory for `prepared`, waiting until `deadline`.

        Raises `InsufficientCapacity`, or `InvalidArgument` for an invalid declaration of memory.
        """
        demand = self._demands.demand(prepared)
        self._monitor.start()
        prepared.reservation = self.capacity.reserve(prepared.key, demand.sizes, deadline)
        total = self.capacity.occupancy()
        log.info(
            "'%s' reserves %s (%s); %s reserved in total",
            prepared.key,
            format_sizes(demand.sizes),
            demand.source,
            total,
        )

    def settle(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation to the size of the loaded `models`.

        Raises `DemandExceeded` if that does not fit.
        """
        reservation, demand = _reservation(prepared), self._demands.demand(prepared)
        if reservation is None:
            return
        sizes = self._demands.record_measured(prepared.key, demand, models)
        self.capacity.adjust(reservation, sizes)
        reservation.measure = partial(
            self._demands.record_measured, prepared.key, demand, list(models)
        )
        if sizes != demand.sizes:
            total = self.capacity.occupancy()
            log.info("'%s' uses %s; %s reserved in total", prepared.key, format_sizes(sizes), total)

    def keep_versions(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Record that only `models` of the versions of `prepared` keep serving.

        Versions that are being unloaded hold memory until they are gone.
        """
        reservation = _reservation(prepared)
        if reservation is None or not models:
            return
        reservation.measure_after_unload = partial(
            self._demands.record_measured,
            prepared.key,
            self._demands.demand(prepared),
            list(models),
        )
        reservation.refresh()

    def grow(self, prepared: PreparedModel, models: Collection[LoadedModel]) -> None:
        """Adjust the reservation after serving models got more instances.

        Raises `DemandExceeded` if that does not fit; the previous reservation is then restored.
        """
        reservation = _reservation(prepared)
        if reservation is None:
            return
        before = reservation.sizes
        for model in models:
            if model.runner is not None:
                model.runner.measure_memory()
        try:
            self.capacity.adjust(
                reservation, self._demands.measured(self._demands.demand(prepared), models)
            )
        except BaseException:
            self.capacity.reservations.change(reservation, before)
            raise


def _reservation(prepared: PreparedModel) -> ModelReservation | None:
    return prepared.reservation if isinstance(prepared.reservation, ModelReservation) else None


class MemoryMonitor:
    """A thread that evicts idle models while too much memory is held.

    It starts with the first load and ends with `stop`.
    """

    def __init__(self, capacity: MemoryCapacity) -> None:
        self._capacity = capacity
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._problem = ""

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._guard:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="memory budget", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        with self._guard:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(MONITOR_INTERVAL_S):
            try:
                problem = self._capacity.evict_excess()
            except Exception:
                log.exception("the check of the memory budget failed")
                continue
            if problem and not self._problem:
                log.warning(
                    "models grew beyond the memory budget, and none can be evicted: %s", problem
                )
            self._problem = problem
