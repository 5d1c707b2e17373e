"""What a client reads from the answer to one call, whatever brings it."""

from __future__ import annotations

import asyncio
from urllib.parse import unquote_to_bytes

from tritonpy_frontend_grpc.wire.frames import Frames


class AnsweredStream:
    """One request as its client sees it; `over` is set when nothing more of the answer comes. `task` is that of the call, where it has one."""

    task: asyncio.Task[None] | None

    def __init__(self) -> None:
        self.status = 0  # HTTP's
        self.headers: dict[bytes, bytes] = {}
        self.trailers: dict[bytes, bytes] = {}
        self.over = asyncio.Event()
        self.held_up = False  # the client does not read
        self._frames = Frames()

    def messages(self) -> list[bytes]:
        """Return the messages of the answer that were not returned yet; those that are compressed with a mark ahead."""
        found = []
        while (one := self._frames.next()) is not None:
            found.append(b"packed " + one.message if one.packed else one.message)
        return found

    async def outcome(self) -> tuple[int, str, list[bytes]]:
        """Return status, text and messages once all was sent."""
        await asyncio.wait_for(self.over.wait(), 20)
        if self.task is not None:
            await asyncio.wait_for(self.task, 20)
        said = self.trailers or self.headers
        text = unquote_to_bytes(said.get(b"grpc-message", b"")).decode()
        return int(said[b"grpc-status"]), text, self.messages()
