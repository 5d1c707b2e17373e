from __future__ import annotations

import asyncio
import threading

from plugins.workers.tests.fake_worker import eventually, on_loop
from tritonpy.api.contexts import InstanceContext
from tritonpy.runners.wakeups import Wakeups
from tritonpy_workers.slot import WorkerSlot


def slot_of(wakeups, feed):
    return WorkerSlot(
        InstanceContext("m_0_0", "CPU", 0, 0), asyncio.get_running_loop(), wakeups, feed
    )


@on_loop
async def test_a_wakeup_on_the_loop_feeds_at_the_end_of_the_iteration():
    wakeups, seen = Wakeups(), []
    wakeups.attach(asyncio.get_running_loop())
    slot = slot_of(wakeups, lambda: seen.append("fed"))
    slot.wake()
    wakeups.soon(lambda: seen.append("after"))
    seen.append("turn")
    await asyncio.sleep(0)
    assert seen == ["turn", "fed", "after"]


@on_loop
async def test_a_wakeup_from_another_thread_feeds_on_the_loop():
    wakeups, threads = Wakeups(), []
    wakeups.attach(asyncio.get_running_loop())
    slot = slot_of(wakeups, lambda: threads.append(threading.current_thread()))
    waker = threading.Thread(target=slot.wake)
    waker.start()
    waker.join()
    assert threads == []
    await eventually(lambda: threads)
    assert threads == [threading.current_thread()]


@on_loop
async def test_during_shutdown_a_wakeup_feeds_on_the_loop_later():
    wakeups, seen = Wakeups(), []
    slot = slot_of(wakeups, lambda: seen.append("fed"))
    slot.wake()
    assert seen == []
    await eventually(lambda: seen)


def test_a_wakeup_after_the_loop_is_closed_is_ignored():
    async def make():
        return slot_of(Wakeups(), lambda: None)

    asyncio.run(make()).wake()
