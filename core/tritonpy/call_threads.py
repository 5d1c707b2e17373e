"""Threads for calls that wait for models, apart from those that compress and decompress."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tritonpy.errors import Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CallThreads:
    """A bounded pool; a call that finds every thread busy is refused, because what holds them may never end."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._free = threading.BoundedSemaphore(most)
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=what)

    async def run(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what `call` returns, from a thread. Raises what it raises, and Unavailable where every thread is busy."""
        if not self._free.acquire(blocking=False):
            raise Unavailable(f"{self._most} {self._what} calls are in progress already, try again later")

        def work() -> _T:
            try:
                return call(*args, **kwargs)
            finally:
                self._free.release()

        try:
            working = self._pool.submit(work)
        except BaseException:
            self._free.release()
            raise
        return await asyncio.shield(asyncio.wrap_future(working))


LOAD_CALLS = CallThreads("load", 128)
"""For calls that wait until a model is loaded, which may take forever."""

MODEL_CALLS = CallThreads("model", 128)
"""For calls that wait for an answer of a model or of a plugin."""
