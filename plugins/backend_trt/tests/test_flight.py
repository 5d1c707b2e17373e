from __future__ import annotations

import pytest

from tritonpy_backend_trt.cuda import Cuda
from tritonpy_backend_trt.flight import EventPool

from .simulated.gpus import Event


@pytest.mark.parametrize(("busy_wait", "flags"), [(True, 2), (False, 3)])
def test_events_wait_as_the_model_wants(simulation, busy_wait, flags):
    pool = EventPool(Cuda(simulation.runtime), busy_wait)
    events = pool.take()
    assert {simulation.machine.get(event, Event).flags for event in events} == {flags}
    pool.give(events)
    pool.close()


def test_events_are_used_again(simulation):
    pool = EventPool(Cuda(simulation.runtime), busy_wait=False)
    first, second = pool.take(), pool.take()
    assert not set(first) & set(second)
    pool.give(first)
    assert pool.take() == first
    pool.give(first)
    pool.give(second)
    pool.close()
    assert simulation.machine.count(Event) == 0
