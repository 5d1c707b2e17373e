"""Reservation of memory for loads: waits for free memory, and evicts idle models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tritonpy.repository import InsufficientCapacity, LoadDeadline
from tritonpy_residency.capacity_errors import DemandExceeded, capacity_error_text
from tritonpy_residency.eviction import ResidentModel, choose_evictions, could_fit, may_proceed
from tritonpy_residency.reservations import MemoryReservations, ModelReservation
from tritonpy_residency.sizes import Sizes, bytes_in, format_bytes, format_sizes

_POLL_S = 0.02  # interval of checks for models that became idle, as requests do not notify
UNLOAD_WAIT_S = 30.0  # how long a load without a deadline waits for models being unloaded


@dataclass(slots=True, eq=False)
class _WaitingLoad:
    """A load that waits for memory. `blocked`: the memory cannot be freed now."""

    key: str
    demand: Sizes
    deadline: LoadDeadline | None
    started: float
    blocked: bool = False

    def is_urgent(self) -> bool:
        return self.deadline is None or self.deadline.is_urgent


class MemoryCapacity:
    """Reserves memory within the limits.

    `residents()` returns the models that hold memory and the ensembles over them. `evict(key)`
    unloads a model unless it is in use. Loads wait in a queue. Evictions are decided by one thread
    at a time, so that no two loads count on the same memory.
    """

    def __init__(
        self,
        reservations: MemoryReservations,
        residents: Callable[[], list[ResidentModel]],
        evict: Callable[[str], bool],
        retry_s: float,
    ) -> None:
        self.reservations = reservations
        self.residents = residents
        self._evict = evict
        self._retry_s = retry_s
        self._queue: list[_WaitingLoad] = []
        self._lock = threading.Lock()

    def occupancy(self) -> str:
        """Return the used part of each limit: `3.0 GiB of 8.0 GiB`."""
        used, bounds = self.reservations.used(), self.reservations.limits.by_device()
        return ", ".join(
            f"{format_bytes(bytes_in(used, device))} of {format_bytes(limit)}"
            for device, limit in bounds.items()
        )

    @property
    def waiting(self) -> int:
        """The number of loads that wait for memory."""
        return len(self._queue)

    def reserve(self, key: str, demand: Sizes, deadline: LoadDeadline | None) -> ModelReservation:
        """Return a reservation of `demand`, waiting until `deadline`.

        Without a deadline it does not wait for models in use. Raises `InsufficientCapacity` with
        the numbers, immediately if the demand can never fit.
        """
        load = _WaitingLoad(key, demand, deadline, time.monotonic())
        with self._lock:
            self._queue.append(load)
        try:
            while True:
                with self._lock:
                    reservation = self._attempt(load)
                if reservation is not None:
                    return reservation
                with self.reservations.changed:
                    self.reservations.changed.wait(_POLL_S)
        finally:
            with self._lock:
                self._queue.remove(load)

    def adjust(self, reservation: ModelReservation, sizes: Sizes) -> None:
        """Set the size of a loaded model. Raises `DemandExceeded` if it does not fit."""
        started = time.monotonic()
        while self.reservations.change(reservation, sizes):
            with self._lock:
                residents = self._residents_for(reservation.key)
                evicted = self._evict_for(residents, {})
            if evicted is None or time.monotonic() - started > UNLOAD_WAIT_S:
                raise DemandExceeded(
                    (
                        f"it holds {format_sizes(sizes)}, which is too much: "
                        f"{self._error_text(residents, {})}"
                    ),
                    retry_after_s=self._retry_s,
                )
            with self.reservations.changed:
                self.reservations.changed.wait(_POLL_S)

    def evict_excess(self) -> str:
        """Evict idle models while too much memory is held; return why if that is impossible."""
        with self._lock:
            residents = self.residents()  # refreshes the sizes
            if not self.reservations.limits.excess(self.reservations.used()):
                return ""
            return self._error_text(residents, {}) if self._evict_for(residents, {}) is None else ""

    def _attempt(self, load: _WaitingLoad) -> ModelReservation | None:
        """Return the reservation, or None after starting evictions.

        Raises `InsufficientCapacity`.
        """
        residents = self._residents_for(load.key)
        waiting_models = () if load.deadline is None else load.deadline.waiting_models()
        if not could_fit(residents, load.demand, self.reservations.limits, waiting_models):
            raise self._capacity_error(load, residents)
        if not may_proceed([(other.blocked, other.is_urgent()) for other in self._ahead(load)]):
            self._check_deadline(load, residents)
            return None
        reservation = self.reservations.try_reserve(load.key, load.demand)
        if reservation is not None:
            return reservation
        load.blocked = self._evict_for(residents, load.demand) is None
        self._check_deadline(load, residents)
        return None

    def _ahead(self, load: _WaitingLoad) -> Sequence[_WaitingLoad]:
        return () if load.deadline is None else self._queue[: self._queue.index(load)]

    def _check_deadline(self, load: _WaitingLoad, residents: Sequence[ResidentModel]) -> None:
        if load.deadline is None:
            if load.blocked or time.monotonic() - load.started > UNLOAD_WAIT_S:
                raise self._capacity_error(load, residents)
            return
        if load.blocked:
            load.deadline.report(self._error_text(residents, load.demand))
        if load.deadline.is_over:
            raise self._capacity_error(load, residents)

    def _evict_for(self, residents: Sequence[ResidentModel], demand: Sizes) -> list[str] | None:
        """Evict models so that `demand` fits; return the selected keys, or None if impossible.

        Memory of models that are being unloaded counts as free.
        """
        evicted = choose_evictions(residents, demand, self.reservations.limits)
        for key in evicted or ():
            if not self._evict(key):
                break  # in use again: the next attempt sees that
        return evicted

    def _residents_for(self, key: str) -> list[ResidentModel]:
        """Return the residents; the model `key`, which is being loaded, cannot be evicted."""
        return [
            replace(model, idle=False, permanent=True) if model.key == key else model
            for model in self.residents()
        ]  # fmt: skip

    def _capacity_error(
        self, load: _WaitingLoad, residents: Sequence[ResidentModel]
    ) -> InsufficientCapacity:
        return InsufficientCapacity(
            self._error_text(residents, load.demand), retry_after_s=self._retry_s
        )

    def _error_text(self, residents: Sequence[ResidentModel], demand: Sizes) -> str:
        return capacity_error_text(
            residents, self.reservations.unloading(), demand, self.reservations.limits
        )
