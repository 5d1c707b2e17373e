"""What leaves on a connection: in the order of the calls where windows allow it, and in turns where they do not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tritonpy_frontend_h2.http2.calls import NO_TRAILERS, UNCOUNTED, NoLimit, Reservation
from tritonpy_frontend_h2.http2.codes import LARGEST_WINDOW, SMALLEST_FRAME_LIMIT, USUAL_WINDOW
from tritonpy_frontend_h2.http2.frames import data_start, header_block

if TYPE_CHECKING:
    from tritonpy_frontend_h2.http2.server_stream import ServerStream

Piece = bytes | memoryview
# How much is made ready at a time, so that an answer for a slow client waits here as what it is and not as frames.
_AT_ONCE = 1024 * 1024
_TURN = 256 * 1024  # what a stream may send before it is another's turn
_JOINED = (
    64 * 1024
)  # shorter pieces are written together: a write for each frame of 16 KiB costs more than the copy; longer ones are not copied
_EMPTY_TABLE = b"\x20"  # HPACK's update of the table's size, to 0


class Backlog:
    """What a stream has yet to send."""

    __slots__ = ("awaited", "pieces", "size", "trailers")

    def __init__(self, pieces: Sequence[bytes], size: int, trailers: bytes | None) -> None:
        self.pieces: deque[Piece] = deque([piece for piece in pieces if piece])
        self.size = size
        self.trailers = trailers
        self.awaited = False  # the receiver was told to wait

    def add(self, pieces: Sequence[bytes], size: int, trailers: bytes | None) -> None:
        """Take more of the same answer; the receiver waits."""
        self.pieces.extend([piece for piece in pieces if piece])
        self.size += size
        self.trailers = trailers
        self.awaited = True

    def take(self, count: int) -> list[Piece]:
        """Take `count` bytes out, without a copy."""
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


class Sender:
    """Makes the frames of answers. `wake` is called when there is something to take after there was nothing."""

    __slots__ = (
        "_ahead",
        "_backlogged",
        "_emptied",
        "_memory",
        "_out",
        "_size",
        "_wake",
        "awake",
        "frame_limit",
        "open",
        "sends",
        "waiting",
        "window",
    )

    def __init__(self, wake: Callable[[], None], memory: Reservation | None = None) -> None:
        self._wake = wake
        self._memory = memory or NoLimit()
        self._backlogged = 0  # bytes that streams have yet to send
        self._out: list[Piece] = []
        self._size = 0
        self.waiting: dict[ServerStream, None] = {}  # streams with a backlog that their windows let send
        self._ahead = b""  # what the next header block begins with
        self._emptied = False
        self.awake = False  # somebody is going to call `take` anyway
        self.open = True  # what is taken is sent soon
        self.sends = 0  # parts of answers so far
        self.window = USUAL_WINDOW
        self.frame_limit = SMALLEST_FRAME_LIMIT

    def control(self, frame: bytes) -> None:
        """Send a frame that no window holds back."""
        if not self.awake:
            self.awake = True
            self._wake()
        self._out.append(frame)
        self._size += len(frame)

    def send(self, stream: ServerStream, headers: bytes | None, data: Sequence[bytes], trailers: bytes | None) -> bool:
        """Send, or keep what does not fit yet; say whether nothing was kept."""
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
            if length > self.window or length > stream.window or length > self.frame_limit or not self.has_room:
                return self._send_in_turns(stream, Backlog(data, length, trailers))
            self.window -= length
            stream.window -= length
            self._out += (data_start(stream.number, length), *data)
            self._size += length
        if trailers is not None:
            self._finish(stream, trailers)
        return True

    def empty_table(self) -> None:
        """Take note that the client keeps fewer fields than at the beginning: it has to hear once how many we count on, which is none."""
        if not self._emptied:
            self._emptied, self._ahead = True, _EMPTY_TABLE

    @property
    def has_room(self) -> bool:
        """Whether bodies may be made ready."""
        return self.open and self._size < _AT_ONCE

    def take(self) -> list[Piece]:
        """Take out what is to be written now: few pieces, the large ones as they were given."""
        self.awake = False
        out, size = self._out, self._size
        if not out:
            return []
        self._out, self._size = [], 0
        if size <= _JOINED:
            return [b"".join(out)]
        taken: list[Piece] = []
        run: list[Piece] = []
        for piece in out:
            if len(piece) < _JOINED:
                run.append(piece)
            else:
                if run:
                    taken.append(b"".join(run))
                    run = []
                taken.append(piece)
        if run:
            taken.append(b"".join(run))
        return taken

    def go_on(self) -> None:
        """Make more ready, after windows grew or what was taken is written."""
        if self.waiting and self.has_room:
            if not self.awake:
                self.awake = True
                self._wake()
            self._pump()

    def widen(self, stream: ServerStream | None, count: int) -> bool:
        """Let `count` bytes more leave, on the connection without a stream; say whether a window can be so large."""
        if stream is None:
            self.window += count
            possible = self.window <= LARGEST_WINDOW
        else:
            stream.window += count
            possible = stream.window <= LARGEST_WINDOW
            if stream.backlog is not None:
                self.waiting[stream] = None
        self.go_on()
        return possible

    def forget(self, stream: ServerStream) -> None:
        """Drop what a stream has yet to send."""
        if stream.backlog is not None:
            self._release(stream.backlog.size)
        stream.backlog = None
        self.waiting.pop(stream, None)

    def admits(self, count: int) -> bool:
        """Reserve memory for `count` bytes that are sent next; return whether there is room. Short answers need none."""
        return count <= UNCOUNTED or self._memory.grow(self._backlogged + count)

    def _release(self, count: int) -> None:
        self._backlogged -= count
        self._memory.shrink(self._backlogged)

    def _put(self, stream: ServerStream, block: bytes, *, last: bool) -> None:
        if self._ahead:
            block, self._ahead = self._ahead + block, b""
        frame = header_block(stream.number, block, last=last)
        self._out.append(frame)
        self._size += len(frame)

    def _finish(self, stream: ServerStream, trailers: bytes) -> None:
        """End the answer with a trailer block, or without one for `NO_TRAILERS`."""
        if trailers is not NO_TRAILERS:
            self._put(stream, trailers, last=True)
        else:
            end = data_start(stream.number, 0, last=True)
            self._out.append(end)
            self._size += len(end)
        stream.answered()

    def _send_in_turns(self, stream: ServerStream, backlog: Backlog) -> bool:
        stream.backlog = backlog
        self._backlogged += backlog.size
        self.waiting[stream] = None
        self._pump()
        backlog.awaited = True
        return stream.backlog is not backlog

    def _pump(self) -> None:
        while self.waiting and self.window > 0 and self.has_room:
            stream = next(iter(self.waiting))
            del self.waiting[stream]
            if stream.backlog is not None:
                self._turn(stream, stream.backlog)

    def _turn(self, stream: ServerStream, backlog: Backlog) -> None:
        most = min(_TURN, self.window, stream.window)
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
            self._end_turns(stream, backlog)
        elif stream.window > 0:
            self.waiting[stream] = None

    def _end_turns(self, stream: ServerStream, backlog: Backlog) -> None:
        stream.backlog = None
        if backlog.trailers is not None:
            self._finish(stream, backlog.trailers)
        elif backlog.awaited:
            stream.receiver.resume()
