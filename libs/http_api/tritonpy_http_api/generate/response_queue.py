"""The queue of responses between the model and the connection of one generate call."""

from __future__ import annotations

import asyncio
from collections import deque

from tritonpy import InferResponse
from tritonpy.frontend import FlowControl


class ResponseQueue:
    """Holds responses until they are sent; it is the tag of the request.

    Used on the event loop only, except `flow_control`, which any thread may use.
    """

    def __init__(self, flow_control: FlowControl) -> None:
        self.flow_control = flow_control
        self.complete = False  # the final response has arrived
        self._waiting: deque[InferResponse] = deque()
        self._changed = asyncio.Event()
        self._abandoned = False

    def put(self, response: InferResponse) -> None:
        """Add a response. An empty one only marks the end."""
        if response.empty or self._abandoned:
            self.flow_control.take()
        else:
            self._waiting.append(response)
        self.complete |= response.final
        self._changed.set()

    async def next(self) -> InferResponse | None:
        """Wait for the next response; return None after the last one or after `abandon`.

        Call `sent` when it has been sent.
        """
        while not self._waiting:
            if self.complete or self._abandoned:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()

    def sent(self) -> None:
        """Record that the response returned by `next` was sent."""
        self.flow_control.take()

    def abandon(self) -> None:
        """Discard waiting and future responses, and wake up a producer that waits for capacity."""
        self._abandoned = True
        while self._waiting:
            self._waiting.popleft()
            self.flow_control.take()
        self.flow_control.abandon()
        self._changed.set()
