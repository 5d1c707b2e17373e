"""The client side of one call, independent of the transport."""

from __future__ import annotations

import asyncio
from urllib.parse import unquote_to_bytes

from tritonpy_frontend_grpc.wire.message_frames import MessageReader


class RecordingStream:
    """Records the response to one call. `over` is set at its end; `task` is the task of the call, if any."""

    task: asyncio.Task[None] | None

    def __init__(self) -> None:
        self.status = 0  # the HTTP status
        self.headers: dict[bytes, bytes] = {}
        self.trailers: dict[bytes, bytes] = {}
        self.over = asyncio.Event()
        self.is_paused = False  # whether the client has stopped reading
        self._frames = MessageReader()

    def messages(self) -> list[bytes]:
        """Return new messages of the response; compressed ones have the prefix "packed "."""
        found = []
        while (one := self._frames.next()) is not None:
            found.append(b"packed " + one.message if one.compressed else one.message)
        return found

    async def outcome(self) -> tuple[int, str, list[bytes]]:
        """Wait for the end of the response; return status, text and messages."""
        await asyncio.wait_for(self.over.wait(), 20)
        if self.task is not None:
            await asyncio.wait_for(self.task, 20)
        headers = self.trailers or self.headers
        text = unquote_to_bytes(headers.get(b"grpc-message", b"")).decode()
        return int(headers[b"grpc-status"]), text, self.messages()
