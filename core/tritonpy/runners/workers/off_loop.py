"""What may wait, for those that must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


async def on_a_thread(act: Callable[[], _T]) -> _T:
    """Return what `act` returns, from a thread of its own: in a pool, models that load models would wait for threads that wait for them."""
    pool = ThreadPoolExecutor(1, "worker")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    finally:
        pool.shutdown(wait=False)
