"""Memory reservations: one for each load of a model, until everything of it is freed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tritonpy.repository import MemoryReservation, epoch_ms
from tritonpy_residency.sizes import ALL, MemoryLimits, Sizes, bytes_in, sum_sizes


@dataclass(slots=True, eq=False)
class ModelReservation(MemoryReservation):
    """The memory that one load of the model `key` holds or is about to hold.

    `unloading` says that the model is being unloaded.
    """

    key: str
    sizes: Sizes
    reservations: MemoryReservations = field(repr=False)
    since_ms: int = field(default_factory=epoch_ms)
    unloading: bool = False
    measure: Callable[[], Sizes] | None = None
    """Measures the loaded model, which may grow; None before it is loaded."""
    measure_after_unload: Callable[[], Sizes] | None = None
    """Replaces `measure` after versions that are being unloaded are gone."""

    def versions_unloaded(self) -> None:
        """Record that versions which were being unloaded are gone."""
        if self.measure_after_unload is not None:
            self.measure, self.measure_after_unload = self.measure_after_unload, None
        self.refresh()

    def refresh(self) -> None:
        """Update the sizes with those of the loaded model."""
        if self.measure is not None:
            self.reservations.change(self, self.measure())

    def begin_unload(self) -> None:
        """Record that the model is being unloaded."""
        # They refer to the models, which must be freed.
        self.measure = self.measure_after_unload = None
        self.reservations.begin_unload(self)

    def close(self) -> None:
        """Release the reservation; may be called twice."""
        self.reservations.close(self)


class MemoryReservations:
    """All reservations.

    `changed` is notified when memory may have been freed. `highest` is the peak by device and in
    `ALL`.
    """

    def __init__(self, limits: MemoryLimits) -> None:
        self.limits = limits
        self.changed = threading.Condition()
        self.highest: dict[str, int] = {ALL: 0}
        self._reservations: dict[ModelReservation, None] = {}

    def try_reserve(self, key: str, demand: Sizes) -> ModelReservation | None:
        """Return a new reservation of `demand`, or None if it does not fit."""
        with self.changed:
            if self.limits.excess(sum_sizes([demand, self._used()])):
                return None
            reservation = ModelReservation(key, dict(demand), self)
            self._reservations[reservation] = None
            self._update_highest()
            return reservation

    def change(self, reservation: ModelReservation, sizes: Sizes) -> dict[str, int]:
        """Set the sizes of `reservation`; return by how much the limits are exceeded."""
        with self.changed:
            if reservation in self._reservations and reservation.sizes != sizes:
                reservation.sizes = dict(sizes)
                self._update_highest()
                self.changed.notify_all()
            return self.limits.excess(self._used())

    def begin_unload(self, reservation: ModelReservation) -> None:
        """Record that the model of `reservation` is being unloaded."""
        with self.changed:
            reservation.unloading = True
            self.changed.notify_all()

    def close(self, reservation: ModelReservation) -> None:
        """Remove `reservation`."""
        with self.changed:
            self._reservations.pop(reservation, None)
            self.changed.notify_all()

    def used(self) -> dict[str, int]:
        """Return the sum of all reservations."""
        with self.changed:
            return self._used()

    def unloading(self) -> dict[str, int]:
        """Return the sum of the reservations whose models are being unloaded."""
        with self.changed:
            return sum_sizes(
                reservation.sizes for reservation in self._reservations if reservation.unloading
            )

    def active(self) -> dict[str, list[ModelReservation]]:
        """Return the reservations that are not being unloaded, by model."""
        found: dict[str, list[ModelReservation]] = {}
        with self.changed:
            for reservation in self._reservations:
                if not reservation.unloading:
                    found.setdefault(reservation.key, []).append(reservation)
        return found

    def _used(self) -> dict[str, int]:
        return sum_sizes(reservation.sizes for reservation in self._reservations)

    def _update_highest(self) -> None:
        used = self._used()
        for device in (ALL, *used):
            self.highest[device] = max(bytes_in(used, device), self.highest.get(device, 0))
