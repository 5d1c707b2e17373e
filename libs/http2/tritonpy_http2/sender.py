"""The output of a connection.

Data is sent at once if the windows allow it, round-robin between streams otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tritonpy_http2.calls import (
    NO_TRAILERS,
    UNCOUNTED,
    ClientReservation,
    Receiver,
    UnlimitedReservation,
)
from tritonpy_http2.codes import LARGEST_WINDOW, SMALLEST_FRAME_LIMIT, USUAL_WINDOW
from tritonpy_http2.frames import data_start, header_block

Piece = bytes | memoryview
# Bytes of prepared frames. Further response data waits in the backlogs of its streams.
_MAX_READY = 1024 * 1024
_MAX_SHARE = 256 * 1024  # bytes that a stream sends before the next stream
_JOIN_BELOW = (
    64 * 1024
)  # shorter pieces are joined: a copy is cheaper than a write per 16 KiB frame
_EMPTY_TABLE = b"\x20"  # HPACK dynamic table size update to 0


class Backlog:
    """Unsent data of a stream."""

    __slots__ = ("pieces", "receiver_waits", "size", "trailers")

    def __init__(self, pieces: Sequence[bytes], size: int, trailers: bytes | None) -> None:
        self.pieces: deque[Piece] = deque([piece for piece in pieces if piece])
        self.size = size
        self.trailers = trailers
        self.receiver_waits = False  # `Receiver.resume` must be called

    def add(self, pieces: Sequence[bytes], size: int, trailers: bytes | None) -> None:
        """Add more data of the same response; `Receiver.resume` is called when it is sent."""
        self.pieces.extend([piece for piece in pieces if piece])
        self.size += size
        self.trailers = trailers
        self.receiver_waits = True

    def take(self, count: int) -> list[Piece]:
        """Remove `count` bytes without copying them."""
        taken: list[Piece] = []
        self.size -= count
        while count:
            piece = self.pieces.popleft()
            if len(piece) > count:
                view = memoryview(piece)
                self.pieces.appendleft(view[count:])
                piece = view[:count]
            taken.append(piece)
            count -= len(piece)
        return taken


class SendingStream(Protocol):
    """The interface of a stream for the sender."""

    number: int
    window: int  # bytes that the server may send
    backlog: Backlog | None
    receiver: Receiver

    def response_sent(self) -> None:
        """Handle the end of the response."""


class Sender:
    """Creates the frames of responses. `wake` is called when there is something to `take`."""

    __slots__ = (
        "_backlogged",
        "_has_emptied_table",
        "_memory",
        "_out",
        "_size",
        "_table_update",
        "_wake",
        "awake",
        "frame_limit",
        "open",
        "sends",
        "waiting",
        "window",
    )

    def __init__(self, wake: Callable[[], None], memory: ClientReservation | None = None) -> None:
        self._wake = wake
        self._memory = memory or UnlimitedReservation()
        self._backlogged = 0  # unsent bytes of all streams
        self._out: list[Piece] = []
        self._size = 0
        self.waiting: dict[SendingStream, None] = {}  # streams with a backlog and an open window
        self._table_update = b""  # prefix of the next header block
        self._has_emptied_table = False
        self.awake = False  # `wake` was called, and `take` was not called since
        self.open = True  # whether the client reads
        self.sends = 0  # number of sent response parts
        self.window = USUAL_WINDOW
        self.frame_limit = SMALLEST_FRAME_LIMIT

    def control(self, frame: bytes) -> None:
        """Send a frame without flow control."""
        if not self.awake:
            self.awake = True
            self._wake()
        self._out.append(frame)
        self._size += len(frame)

    def send(
        self,
        stream: SendingStream,
        headers: bytes | None,
        data: Sequence[bytes],
        trailers: bytes | None,
    ) -> bool:
        """Send a part of a response or queue it; return whether everything was sent."""
        if not self.awake:
            self.awake = True
            self._wake()
        self.sends += 1
        if headers is not None:
            self._put(stream, headers, last=False)
        length = sum(map(len, data))
        if stream.backlog is not None:
            self._backlogged += length
            stream.backlog.add(data, length, trailers)
            return False
        if length:
            if (
                length > self.window
                or length > stream.window
                or length > self.frame_limit
                or not self.can_prepare
            ):
                return self._queue(stream, Backlog(data, length, trailers))
            self.window -= length
            stream.window -= length
            self._out += (data_start(stream.number, length), *data)
            self._size += length
        if trailers is not None:
            self._finish(stream, trailers)
        return True

    def empty_table(self) -> None:
        """Send an HPACK table size of 0 once, because the client has reduced its limit."""
        if not self._has_emptied_table:
            self._has_emptied_table, self._table_update = True, _EMPTY_TABLE

    @property
    def can_prepare(self) -> bool:
        """Whether more frames may be prepared."""
        return self.open and self._size < _MAX_READY

    def take(self) -> list[Piece]:
        """Remove and return the pieces to write. Large pieces are not copied."""
        self.awake = False
        out, size = self._out, self._size
        if not out:
            return []
        self._out, self._size = [], 0
        if size <= _JOIN_BELOW:
            return [b"".join(out)]
        taken: list[Piece] = []
        run: list[Piece] = []
        for piece in out:
            if len(piece) < _JOIN_BELOW:
                run.append(piece)
            else:
                if run:
                    taken.append(b"".join(run))
                    run = []
                taken.append(piece)
        if run:
            taken.append(b"".join(run))
        return taken

    def fill_output(self) -> None:
        """Prepare more frames, after windows grew or output was written."""
        if self.waiting and self.can_prepare:
            if not self.awake:
                self.awake = True
                self._wake()
            self._fill()

    def extend_window(self, stream: SendingStream | None, count: int) -> bool:
        """Extend the window of `stream`, or of the connection if `stream` is None.

        Return False if the window becomes larger than HTTP/2 allows.
        """
        if stream is None:
            self.window += count
            is_valid = self.window <= LARGEST_WINDOW
        else:
            stream.window += count
            is_valid = stream.window <= LARGEST_WINDOW
            if stream.backlog is not None:
                self.waiting[stream] = None
        self.fill_output()
        return is_valid

    def forget(self, stream: SendingStream) -> None:
        """Drop the unsent data of a stream."""
        if stream.backlog is not None:
            self._release(stream.backlog.size)
        stream.backlog = None
        self.waiting.pop(stream, None)

    def admits(self, count: int) -> bool:
        """Reserve memory for the next `count` bytes; return whether that succeeded.

        A small number of bytes needs no reservation.
        """
        return count <= UNCOUNTED or self._memory.grow(self._backlogged + count)

    def _release(self, count: int) -> None:
        self._backlogged -= count
        self._memory.shrink(self._backlogged)

    def _put(self, stream: SendingStream, block: bytes, *, last: bool) -> None:
        if self._table_update:
            block, self._table_update = self._table_update + block, b""
        frame = header_block(stream.number, block, last=last)
        self._out.append(frame)
        self._size += len(frame)

    def _finish(self, stream: SendingStream, trailers: bytes) -> None:
        """End the response with a trailer block, or without one for `NO_TRAILERS`."""
        if trailers is not NO_TRAILERS:
            self._put(stream, trailers, last=True)
        else:
            end = data_start(stream.number, 0, last=True)
            self._out.append(end)
            self._size += len(end)
        stream.response_sent()

    def _queue(self, stream: SendingStream, backlog: Backlog) -> bool:
        stream.backlog = backlog
        self._backlogged += backlog.size
        self.waiting[stream] = None
        self._fill()
        backlog.receiver_waits = True
        return not backlog.size

    def _fill(self) -> None:
        while self.waiting and self.window > 0 and self.can_prepare:
            stream = next(iter(self.waiting))
            del self.waiting[stream]
            if stream.backlog is not None:
                self._send_share(stream, stream.backlog)

    def _send_share(self, stream: SendingStream, backlog: Backlog) -> None:
        most = min(_MAX_SHARE, self.window, stream.window)
        self.sends += most > 0
        before = backlog.size
        while most > 0 and backlog.size:
            count = min(backlog.size, most, self.frame_limit)
            self._out += (data_start(stream.number, count), *backlog.take(count))
            self._size += count
            self.window -= count
            stream.window -= count
            most -= count
        self._release(before - backlog.size)
        if not backlog.size:
            self._finish_backlog(stream, backlog)
        elif stream.window > 0:
            self.waiting[stream] = None

    def _finish_backlog(self, stream: SendingStream, backlog: Backlog) -> None:
        stream.backlog = None
        if backlog.trailers is not None:
            self._finish(stream, backlog.trailers)
        elif backlog.receiver_waits:
            stream.receiver.resume()
