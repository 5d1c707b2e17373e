from __future__ import annotations

from tritonpy.api.contexts import InstanceContext
from tritonpy.api.scheduler import UNBOUNDED
from tritonpy.runners.slot import Slot


def test_an_instance_without_a_limit_always_has_capacity() -> None:
    slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0))
    slot.open = 1000
    assert slot.capacity() == UNBOUNDED


def test_capacity_is_the_rest_of_max_open() -> None:
    slot = Slot(InstanceContext("m_0_0", "CPU", 0, 0, max_open=4))
    slot.open = 3
    assert slot.capacity() == 1


def test_a_new_slot_waits_for_its_wakeup() -> None:
    assert not Slot(InstanceContext("m_0_0", "CPU", 0, 0)).wakeup.acquire(blocking=False)
