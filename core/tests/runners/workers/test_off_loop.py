from __future__ import annotations

import asyncio
import threading

import pytest

from core.tests.runners.workers.fake_worker import on_loop
from tritonpy.runners.workers.off_loop import on_a_thread


@on_loop
async def test_what_waits_for_another_question_does_not_hold_it_up() -> None:
    meeting = threading.Barrier(40)  # more than a pool would have threads
    await asyncio.gather(*(on_a_thread(meeting.wait) for _ in range(40)))


@on_loop
async def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await on_a_thread(fail)
