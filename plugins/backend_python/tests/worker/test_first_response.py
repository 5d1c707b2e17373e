from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from tritonpy_worker.first_response import FirstResponse


class Call:
    """An owner of a first response, like a call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.on_cancel = 0
        self.first = FirstResponse(loop, self.give_up)

    def give_up(self) -> None:
        self.on_cancel += 1


def test_any_thread_can_complete_the_future_once() -> None:
    async def wait() -> Call:
        call = Call(asyncio.get_running_loop())
        threads = [threading.Thread(target=call.first.set_arrived) for _ in range(2)]
        for thread in threads:
            thread.start()
        await call.first.future
        for thread in threads:
            thread.join()
        await asyncio.sleep(0)
        return call

    assert asyncio.run(wait()).on_cancel == 0


def test_cancelling_the_coroutine_cancels_the_call() -> None:
    async def wait() -> Call:
        call = Call(asyncio.get_running_loop())
        task = asyncio.ensure_future(asyncio.wait_for(call.first.future, None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        call.first.set_arrived()
        await asyncio.sleep(0)
        return call

    assert asyncio.run(wait()).on_cancel == 1


def test_a_response_after_the_end_of_the_loop_is_ignored() -> None:
    loop = asyncio.new_event_loop()
    call = Call(loop)
    loop.close()
    call.first.set_arrived()


def test_its_owner_is_deleted_without_a_garbage_collection() -> None:
    async def wait() -> weakref.ref[Call]:
        call = Call(asyncio.get_running_loop())
        call.first.set_arrived()
        await call.first.future
        return weakref.ref(call)

    gc.disable()
    try:
        assert asyncio.run(wait())() is None
    finally:
        gc.enable()
