from __future__ import annotations

import asyncio
import threading

import pytest

from tritonpy_network.call_threads import CallThreads
from tritonpy_types.errors import Unavailable


def test_a_call_runs_in_a_thread_and_returns_its_result_or_raises_its_exception():
    async def scenario():
        threads = CallThreads("test", 2)
        assert await threads.run(lambda a, b: a + b, 3, b=4) == 7
        assert await threads.run(threading.current_thread) is not threading.current_thread()
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 / 0)

    asyncio.run(scenario())


def test_a_call_is_refused_while_every_thread_is_busy():
    async def scenario():
        threads, release = CallThreads("test", 2), threading.Event()
        calls = [asyncio.create_task(threads.run(release.wait, 30)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="2 test calls are in progress already"):
            await threads.run(lambda: None)
        release.set()
        await asyncio.gather(*calls)
        assert await threads.run(lambda: 1) == 1

    asyncio.run(scenario())


def test_a_canceled_call_keeps_its_thread_until_it_ends():
    async def scenario():
        threads, release = CallThreads("test", 1), threading.Event()
        call = asyncio.create_task(threads.run(release.wait, 30))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(Unavailable):
            await threads.run(lambda: None)
        release.set()

    asyncio.run(scenario())
