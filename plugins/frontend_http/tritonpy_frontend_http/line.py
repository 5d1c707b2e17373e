"""Requests that wait on a connection until earlier ones are answered."""

from __future__ import annotations

from typing import Any

from tritonpy_frontend_http.connection import Connection
from tritonpy_frontend_http.refusal import Refusal

# Bytes of requests that are read ahead of their turn. Up to there the connection is listened to, so that a client that leaves is noticed.
MAX_AHEAD = 1 << 20


class Line(Connection):
    """A connection with its line of requests; who leaves ends the one that is being served, too."""

    _served: Any = None  # whose answer comes next, where others wait behind it
    _ahead = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the one that is being served; the last one of the line hears of it from uvicorn."""
        served = self._served
        if served is not None and served is not self.cycle and not served.response_complete:
            served.disconnected = True
            served.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def stand_in_line(self, before: Any, cycle: Any) -> None:
        """Let `cycle` wait for its turn; `before` is the request that came before it."""
        if not self.pipeline:
            self._served = before
        self.pipeline.appendleft((cycle, self.app))

    def read_ahead(self, size: int) -> None:
        """Take note of what was read while others wait; stop reading where that is enough."""
        self._ahead += size
        if self._ahead > MAX_AHEAD:
            self.flow.pause_reading()

    def next_in_line(self) -> tuple[Any, Any]:
        """Take the oldest that waits: its turn has come."""
        cycle: Any
        cycle, app = self.pipeline.pop()
        self._served = None if type(cycle) is Refusal else cycle
        if not self.pipeline:
            self._ahead = 0
        return cycle, app
