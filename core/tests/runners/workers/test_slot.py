from __future__ import annotations

import asyncio
import threading

from core.tests.runners.workers.fake_worker import eventually, on_loop
from tritonpy.api.backend import InstanceContext
from tritonpy.runners.rings import Rings
from tritonpy.runners.workers.slot import WorkerSlot


def slot_of(rings, feed):
    return WorkerSlot(InstanceContext("m_0_0", "CPU", 0, 0), asyncio.get_running_loop(), rings, feed)


@on_loop
async def test_rung_on_the_loop_it_is_fed_at_the_end_of_the_turn():
    rings, seen = Rings(), []
    rings.attach(asyncio.get_running_loop())
    slot = slot_of(rings, lambda: seen.append("fed"))
    slot.ring()
    rings.soon(lambda: seen.append("after"))
    seen.append("turn")
    await asyncio.sleep(0)
    assert seen == ["turn", "fed", "after"]


@on_loop
async def test_rung_by_another_thread_it_is_fed_on_the_loop():
    rings, threads = Rings(), []
    rings.attach(asyncio.get_running_loop())
    slot = slot_of(rings, lambda: threads.append(threading.current_thread()))
    ringer = threading.Thread(target=slot.ring)
    ringer.start()
    ringer.join()
    assert threads == []
    await eventually(lambda: threads)
    assert threads == [threading.current_thread()]


@on_loop
async def test_while_the_server_stops_it_is_still_fed_on_the_loop_and_not_in_the_middle_of_a_ring():
    rings, seen = Rings(), []
    slot = slot_of(rings, lambda: seen.append("fed"))
    slot.ring()
    assert seen == []
    await eventually(lambda: seen)


def test_after_the_loop_a_ring_is_not_heard():
    async def make():
        return slot_of(Rings(), lambda: None)

    asyncio.run(make()).ring()
