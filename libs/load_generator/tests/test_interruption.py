from __future__ import annotations

import asyncio
import os
import signal

import pytest

from tritonpy_load_generator.interruption import interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_sets_the_event_and_the_handlers_end(number):
    async def main():
        with interruption() as interrupted:
            os.kill(os.getpid(), number)
            await asyncio.wait_for(interrupted.wait(), 10)

    before = signal.getsignal(number)
    asyncio.run(main())
    assert signal.getsignal(number) in {before, signal.default_int_handler, signal.SIG_DFL}


def test_outside_of_the_main_thread_there_are_no_handlers():
    async def main():
        with interruption() as interrupted:
            assert not interrupted.is_set()

    async def in_thread():
        await asyncio.to_thread(asyncio.run, main())

    asyncio.run(in_thread())
