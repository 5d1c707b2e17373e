"""The count of inference requests in flight, used to drain the server."""

from __future__ import annotations

import asyncio


class InflightCounter:
    """Counts requests in flight. Used on one event loop only."""

    def __init__(self) -> None:
        self.is_draining = False
        self._count = 0
        self._is_empty = asyncio.Event()

    def add(self) -> None:
        """Count a new request. Check `is_draining` first."""
        self._count += 1

    def remove(self) -> None:
        """Remove a request that has its response or was cancelled."""
        self._count -= 1
        if self.is_draining and not self._count:
            self._is_empty.set()

    async def drain(self) -> None:
        """Set `is_draining` and wait until no request is in flight."""
        self.is_draining = True
        if self._count:
            await self._is_empty.wait()
