"""Lets inference requests in, counts those in progress, and closes when the server drains."""

from __future__ import annotations

import asyncio


class Gate:
    """Counts requests; all calls are made on one event loop."""

    def __init__(self) -> None:
        self.closed = False
        self._inside = 0
        self._empty = asyncio.Event()

    def enter(self) -> None:
        """Count one request in; ask `closed` first."""
        self._inside += 1

    def leave(self) -> None:
        """Count one request out: it is answered, or nobody waits for its answer any more."""
        self._inside -= 1
        if self.closed and not self._inside:
            self._empty.set()

    async def close(self) -> None:
        """Let nobody in from now on, and return when everyone is out."""
        self.closed = True
        if self._inside:
            await self._empty.wait()
