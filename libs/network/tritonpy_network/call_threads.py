"""Bounded thread pools for calls that wait for models, separate from those for compression."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tritonpy_types.errors import Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CallThreads:
    """A bounded thread pool that refuses calls while all threads are busy.

    A call may never end, so a queued call could wait forever.
    """

    def __init__(self, kind: str, max_calls: int) -> None:
        self._kind = kind
        self._max_calls = max_calls
        self._free = threading.BoundedSemaphore(max_calls)
        self._pool = ThreadPoolExecutor(max_calls, thread_name_prefix=kind)

    async def run(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run `call` in a thread and return its result.

        Raises its exceptions, and Unavailable if every thread is busy.
        """
        if not self._free.acquire(blocking=False):
            raise Unavailable(
                f"{self._max_calls} {self._kind} calls are in progress already, try again later"
            )

        def call_and_release() -> _T:
            try:
                return call(*args, **kwargs)
            finally:
                self._free.release()

        try:
            future = self._pool.submit(call_and_release)
        except BaseException:
            self._free.release()
            raise
        return await asyncio.shield(asyncio.wrap_future(future))


LOAD_CALLS = CallThreads("load", 128)
"""For calls that wait for a model to load, which may take forever."""

MODEL_CALLS = CallThreads("model", 128)
"""For calls that wait for a model or a plugin."""
