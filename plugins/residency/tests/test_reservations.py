from __future__ import annotations

from tritonpy_residency.reservations import MemoryReservations
from tritonpy_residency.sizes import ALL, MemoryLimits


def test_memory_is_reserved_if_it_fits_and_released_once():
    reservations = MemoryReservations(MemoryLimits(10))
    first = reservations.try_reserve("a", {"cpu": 6})
    assert reservations.try_reserve("b", {"cpu": 5}) is None
    assert reservations.used() == {"cpu": 6}
    first.close()
    first.close()
    assert reservations.used() == {}
    assert reservations.try_reserve("b", {"cpu": 5}) is not None
    assert reservations.highest == {ALL: 6, "cpu": 6}


def test_an_unloading_model_holds_its_memory_until_it_is_closed():
    reservations = MemoryReservations(MemoryLimits(10))
    reservation = reservations.try_reserve("a", {"cpu": 6})
    reservation.begin_unload()
    assert reservations.unloading() == {"cpu": 6}
    assert reservations.active() == {}
    assert reservations.try_reserve("b", {"cpu": 5}) is None


def test_a_change_returns_the_excess():
    reservations = MemoryReservations(MemoryLimits(10, {"0": 3}))
    reservation = reservations.try_reserve("a", {"cpu": 6})
    assert reservations.change(reservation, {"cpu": 8, "0": 4}) == {ALL: 2, "0": 1}
    assert reservations.highest[ALL] == 12
    reservation.close()
    assert reservations.change(reservation, {"cpu": 1}) == {}, "it is gone"


def test_a_reservation_is_refreshed_by_measurements():
    reservations = MemoryReservations(MemoryLimits(10))
    reservation = reservations.try_reserve("a", {"cpu": 1})
    reservation.refresh()
    assert reservation.sizes == {"cpu": 1}
    reservation.measure, reservation.measure_after_unload = lambda: {"cpu": 5}, lambda: {"cpu": 2}
    reservation.refresh()
    assert reservation.sizes == {"cpu": 5}
    reservation.versions_unloaded()
    assert reservation.sizes == {"cpu": 2}
    reservation.begin_unload()
    reservation.refresh()
    assert (reservation.sizes, reservation.measure) == ({"cpu": 2}, None)
