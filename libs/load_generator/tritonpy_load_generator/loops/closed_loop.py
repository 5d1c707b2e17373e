"""Closed loop: a fixed number of requests in flight; the next one starts when one finishes."""

from __future__ import annotations

from tritonpy_load_generator.loops.exchange import RequestSender
from tritonpy_load_generator.loops.loop import Loop


class ClosedLoop(Loop):
    """Keeps every sender busy. Latency counts from when a request is sent."""

    def start(self) -> None:
        """Send a request on every sender."""
        for sender in self._senders:
            self._send_next(sender)

    def _send_next(self, sender: RequestSender) -> None:
        if self._stopping or self._budget.exhausted:
            self._end_sequence(sender)
        else:
            self._send(sender)
