"""The answers of one generate call, between the model and the connection."""

from __future__ import annotations

import asyncio
from collections import deque

from tritonpy import InferResponse, Room


class Answers:
    """Keeps answers until they can be sent; the tag of its request. Used on the event loop only, its `room` by any thread."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.complete = False  # the final answer is here
        self._waiting: deque[InferResponse] = deque()
        self._changed = asyncio.Event()
        self._abandoned = False

    def put(self, response: InferResponse) -> None:
        """Take an answer; an empty one only says that there are no more."""
        if response.empty or self._abandoned:
            self.room.take()
        else:
            self._waiting.append(response)
        self.complete |= response.final
        self._changed.set()

    async def next(self) -> InferResponse | None:
        """Return the next answer as soon as there is one; None where there are no more, or nobody wants them. Call `sent` afterwards."""
        while not self._waiting:
            if self.complete or self._abandoned:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()

    def sent(self) -> None:
        """Take note that the answer that `next` returned has left."""
        self.room.take()

    def abandon(self) -> None:
        """From now on nobody wants them: what waits is forgotten, and no producer has to wait."""
        self._abandoned = True
        while self._waiting:
            self._waiting.popleft()
            self.room.take()
        self.room.abandon()
        self._changed.set()
