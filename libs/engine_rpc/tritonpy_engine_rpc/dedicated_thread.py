"""Execution of blocking functions on a dedicated thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


async def run_in_thread(act: Callable[[], _T]) -> _T:
    """Run `act` on a new thread and return its result.

    In a pool, models that load models could wait for threads that wait for them.
    """
    pool = ThreadPoolExecutor(1, "worker")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, act)
    finally:
        pool.shutdown(wait=False)
