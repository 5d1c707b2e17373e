from __future__ import annotations

from tritonpy.api.backend import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.slot import BARRED_FOR, QUICK_NS, Slot


def test_an_instance_without_a_bound_always_has_room() -> None:
    slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0))
    slot.open = 1000
    assert slot.room() == UNBOUNDED


def test_room_is_what_is_left_of_max_open() -> None:
    slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0, max_open=4))
    slot.open = 3
    assert slot.room() == 1


def test_a_new_slot_waits_for_its_bell() -> None:
    assert not Slot(InstanceContext("m_0_0", "CPU", 0, 0)).bell.acquire(blocking=False)


def quick_slot() -> Slot:
    slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0))
    slot.run_here = lambda: None
    return slot


def test_an_instance_is_quick_once_its_executions_prove_it() -> None:
    slot = quick_slot()
    assert not slot.is_quick
    slot.took(20_000, here=False)
    assert slot.is_quick
    slot.run_here = None
    assert not slot.is_quick


def test_an_instance_that_takes_long_is_not_quick() -> None:
    slot = quick_slot()
    slot.took(QUICK_NS, here=False)
    assert not slot.is_quick


def test_one_slow_execution_on_the_loop_bars_it_for_long() -> None:
    slot = quick_slot()
    slot.took(20_000, here=False)
    slot.took(5 * QUICK_NS, here=True)
    for _ in range(BARRED_FOR - 1):
        slot.took(20_000, here=False)
        assert not slot.is_quick
    slot.took(20_000, here=False)
    assert slot.is_quick
