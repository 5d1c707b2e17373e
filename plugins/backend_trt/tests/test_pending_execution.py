from __future__ import annotations

import pytest

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.pending_execution import EventPool

from .simulated.gpus import Event


@pytest.mark.parametrize(("busy_wait", "flags"), [(True, 2), (False, 3)])
def test_events_spin_or_block_as_configured(simulation, busy_wait, flags):
    pool = EventPool(Cuda(simulation.runtime), busy_wait)
    events = pool.acquire()
    assert {simulation.machine.get(event, Event).flags for event in events} == {flags}
    pool.release(events)
    pool.close()


def test_events_are_used_again(simulation):
    pool = EventPool(Cuda(simulation.runtime), busy_wait=False)
    first, second = pool.acquire(), pool.acquire()
    assert not set(first) & set(second)
    pool.release(first)
    assert pool.acquire() == first
    pool.release(first)
    pool.release(second)
    pool.close()
    assert simulation.machine.count(Event) == 0
