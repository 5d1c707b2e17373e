from __future__ import annotations

import asyncio
import threading

import pytest

from plugins.workers.tests.fake_worker import on_loop
from tritonpy_engine_rpc.dedicated_thread import run_in_thread


@on_loop
async def test_blocking_functions_do_not_block_each_other() -> None:
    meeting = threading.Barrier(40)  # more than the threads of a pool
    await asyncio.gather(*(run_in_thread(meeting.wait) for _ in range(40)))


@on_loop
async def test_an_error_of_the_function_is_raised() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_in_thread(fail)
