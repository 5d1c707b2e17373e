from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from tritonpy_worker.first_response import FirstResponse


class Call:
    """What holds a first response, as calls do."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.given_up = 0
        self.first = FirstResponse(loop, self.give_up)

    def give_up(self) -> None:
        self.given_up += 1


def test_any_thread_completes_it_once() -> None:
    async def wait() -> Call:
        call = Call(asyncio.get_running_loop())
        threads = [threading.Thread(target=call.first.arrive) for _ in range(2)]
        for thread in threads:
            thread.start()
        await call.first.future
        for thread in threads:
            thread.join()
        await asyncio.sleep(0)
        return call

    assert asyncio.run(wait()).given_up == 0


def test_a_coroutine_that_leaves_gives_the_call_up() -> None:
    async def wait() -> Call:
        call = Call(asyncio.get_running_loop())
        task = asyncio.ensure_future(asyncio.wait_for(call.first.future, None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        call.first.arrive()
        await asyncio.sleep(0)
        return call

    assert asyncio.run(wait()).given_up == 1


def test_a_response_that_comes_when_the_loop_is_closed_is_nobodys() -> None:
    loop = asyncio.new_event_loop()
    call = Call(loop)
    loop.close()
    call.first.arrive()


def test_who_holds_it_goes_without_the_collector() -> None:
    async def wait() -> weakref.ref[Call]:
        call = Call(asyncio.get_running_loop())
        call.first.arrive()
        await call.first.future
        return weakref.ref(call)

    gc.disable()
    try:
        assert asyncio.run(wait())() is None
    finally:
        gc.enable()
