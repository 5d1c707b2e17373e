"""One connection of a server: what the client's frames mean, and who hears of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tritonpy_frontend_h2.http2 import codes, frames
from tritonpy_frontend_h2.http2.calls import UNCOUNTED, Account, Calls, NoLimit, Receiver
from tritonpy_frontend_h2.http2.codes import PROTOCOL_ERROR
from tritonpy_frontend_h2.http2.control_frames import ControlFrames
from tritonpy_frontend_h2.http2.faults import ConnectionFault
from tritonpy_frontend_h2.http2.frame_reader import Bytes, FrameReader, FrameSink
from tritonpy_frontend_h2.http2.header_frames import HeaderFrames
from tritonpy_frontend_h2.http2.known_blocks import Head, KnownBlocks
from tritonpy_frontend_h2.http2.limits import Limits
from tritonpy_frontend_h2.http2.measured import Measured
from tritonpy_frontend_h2.http2.patience import Patience
from tritonpy_frontend_h2.http2.ping_strikes import PingRules
from tritonpy_frontend_h2.http2.rules import are_trailers
from tritonpy_frontend_h2.http2.sender import Sender
from tritonpy_frontend_h2.http2.server_stream import ServerStream

_UNCOVERED = 64  # open calls of a connection that need no reservation for what is small of them
_EMPTY_CALL = 2.0  # credit for a call without a body, which no gRPC client makes; its answer brings 1 back
_LATE_FRAME = 0.05  # for DATA of a stream that was answered early, and for a stream that is refused
_BLOCK_BYTES = 1024  # of a header block that is refused cost 1
_MOST_REMEMBERED = 1000  # streams that were reset here, and gaps between streams


class Connection(FrameSink):
    """Turns bytes into calls; what is to be written is in `sender`. `wake` is called when there is something, `clock` counts seconds."""

    def __init__(
        self,
        calls: Calls,
        limits: Limits,
        rules: PingRules,
        clock: Callable[[], float],
        wake: Callable[[], None],
        account: Account | None = None,
        extra_info: Callable[[str, Any], Any] = lambda _name, default: default,
    ) -> None:
        self.account = account
        self.extra_info = extra_info
        self._calls_memory = NoLimit() if account is None else account.reservation()
        self._covered = _UNCOVERED  # calls that may be open without another reservation
        self._calls = calls
        self._limits = limits
        self._update_at = limits.window // 2  # bytes that are worth a window update
        self._known = KnownBlocks(limits.header_list, limits.largest_list, limits.huffman)
        self._reader = FrameReader(self, limits.frame, limits.header_block)
        self._granted = limits.window  # what the client may send
        self._freed = 0  # what it may send more, which it was not told yet
        self._last = 0  # the newest stream
        self._skipped: deque[range] = deque(maxlen=_MOST_REMEMBERED)  # streams below it that were never begun
        self._reset_here: dict[int, None] = {}  # streams whose client may not know yet that they are over
        self._final = False  # there will be no newer ones
        self._served = codes.LAST_STREAM  # the newest stream that the client may count on, as it was told
        self._head_frames = HeaderFrames(limits.header_block)
        self.streams: dict[int, ServerStream] = {}
        self.patience = Patience(clock)
        self.sender = Sender(wake, None if account is None else account.reservation())
        self.control = ControlFrames(self, rules, clock)
        self.over = False  # nothing that comes is looked at any more
        self.sender.control(frames.settings(limits.settings()))
        self.sender.control(frames.window_update(0, limits.window - codes.USUAL_WINDOW))

    def receive(self, data: Bytes) -> None:
        """Take what the client sent."""
        if not self.over:
            try:
                self._reader.feed(data)
            except ConnectionFault as fault:
                self.fail(fault.code, fault.text)

    def room_for_body(self) -> memoryview | None:
        """Return where what comes next may be read to, which `received_to_room` is told then; None where it is to be given to `receive`."""
        return None if self.over else self._reader.room()

    def received_to_room(self, count: int) -> None:
        """Take what was read to `room_for_body`."""
        try:
            self._reader.filled(count)
        except ConnectionFault as fault:
            self.fail(fault.code, fault.text)

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.over or (self._final and not self.streams)

    @property
    def activity(self) -> int:
        """Grows with every call and every part of an answer."""
        return self._last + self.sender.sends

    def unsent(self) -> int:
        """Return how many bytes of answers wait for the client's windows."""
        return sum([stream.backlog.size for stream in self.streams.values() if stream.backlog is not None])

    def fail(self, code: int, text: str) -> None:
        """End the connection; the calls that are open hear of it."""
        if not self.over:
            self.sender.control(frames.goaway(min(self._last, self._served), code, text.encode()))
            self.lose()

    def lose(self) -> None:
        """Give all calls up."""
        self.over = True
        for stream in list(self.streams.values()):
            self.forget(stream).reset()

    def close(self) -> None:
        """Give all calls up, and let go of everything: nothing is read or written any more.

        The parts refer to each other. Kept together, what they hold would stay until the garbage collector runs.
        """
        self.lose()
        del self._reader, self.control, self.sender

    def retire(self, text: str) -> None:
        """Ask the client to take another connection for new calls; it has the time of a ping to hear of it."""
        if not self._final:
            self.sender.control(frames.goaway(codes.LAST_STREAM, codes.NO_ERROR, text.encode()))
            self.control.ping(self.close_to_new_calls)

    def close_to_new_calls(self, text: str = "") -> None:
        """Serve the calls that are there and no others."""
        if not self._final and not self.over:
            self._final = True
            self._served = self._last
            self.sender.control(frames.goaway(self._last, codes.NO_ERROR, text.encode()))

    # Frames

    def headers(self, flags: int, stream: int, payload: bytes) -> None:
        if flags == codes.END_HEADERS:
            self._head(stream, payload, False)
            return
        if not stream:
            raise ConnectionFault(PROTOCOL_ERROR, "a header block without a stream")
        block = self._head_frames.begin(flags, payload)
        if block is None:
            self._reader.continuing = stream
        else:
            self._head(stream, block, self._head_frames.ended)

    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind != codes.CONTINUATION:
            self.control.take(kind, flags, stream, payload)
            return
        if not self._reader.continuing:
            raise ConnectionFault(PROTOCOL_ERROR, "a continuation of nothing")
        self.patience.charge("continuations")
        block = self._head_frames.go_on(flags, payload)
        if block is not None:
            self._reader.continuing = 0
            self._head(stream, block, self._head_frames.ended)

    def data(self, stream: int, part: Bytes, ended: bool) -> None:
        length = len(part)
        if not length and not ended:
            self.patience.charge("empty frames")
        found = self._arrived(stream, length, ended)
        if found is not None:
            found.receiver.data(part, ended)
            self.free(found, length)

    def padding(self, stream: int, count: int) -> None:
        found = self._arrived(stream, count, False)
        if found is not None:
            self.free(found, count)

    def room(self, stream: int) -> memoryview | None:
        found = self.streams.get(stream)
        return None if found is None or found.ended else found.receiver.room()

    def filled(self, stream: int, count: int, ended: bool) -> None:
        found = self._arrived(stream, count, ended)
        if found is not None:
            found.receiver.filled(count, ended)
            self.free(found, count)

    # Streams

    def find(self, stream: int) -> ServerStream | None:
        """Return a stream that is open, None for one that was. Raises ConnectionFault for one that never was."""
        found = self.streams.get(stream)
        if found is None and (stream > self._last or not stream & 1):
            raise ConnectionFault(PROTOCOL_ERROR, "a frame of a stream that was never begun")
        return found

    def refuse(self, stream: int, code: int) -> None:
        """Reset a stream for what the client did. Raises ConnectionFault where it does so all the time."""
        self.patience.charge("faults")
        found = self.streams.get(stream)
        if found is not None:
            self._send_reset(stream, code)
            self.forget(found).reset()
        else:
            self.sender.control(frames.rst_stream(stream, code))

    def reset(self, stream: ServerStream, code: int) -> None:
        """Reset a stream for reasons of our own."""
        self._send_reset(stream.number, code)
        self.forget(stream)

    def _send_reset(self, stream: int, code: int) -> None:
        """Reset a stream whose client may still send, and ignore what it sent before it heard of it."""
        self.sender.control(frames.rst_stream(stream, code))
        self._reset_here[stream] = None
        if len(self._reset_here) > _MOST_REMEMBERED:
            del self._reset_here[next(iter(self._reset_here))]

    def forget(self, stream: ServerStream) -> Receiver:
        """Take note that a stream is over, and return its receiver."""
        del self.streams[stream.number]
        stream.closed = True
        if stream.backlog is not None:
            self.sender.forget(stream)
        if self._covered > _UNCOVERED and not self.streams:
            self._covered = _UNCOVERED
            self._calls_memory.shrink()
        return stream.part()

    def free(self, stream: ServerStream, count: int) -> None:
        """Let the client send more in place of what came, on this stream and on others."""
        self._free(count)
        if not stream.ended:  # as most are by now
            self.widen(stream, count)

    def widen(self, stream: ServerStream, count: int) -> None:
        """Let the client send more on a stream."""
        if stream.ended or stream.closed:
            return
        stream.freed += count
        if stream.freed >= self._limits.stream_window // 2:
            self.sender.control(frames.window_update(stream.number, stream.freed))
            stream.granted += stream.freed
            stream.freed = 0

    def _head(self, number: int, block: bytes, ended: bool) -> None:
        head = self._known.get(block) or self._known.decode(block)
        last = self._last
        if number <= last or not number & 1:
            self._head_of_known(number, head, ended)
            return
        if number > last + 2:
            self._skipped.append(range(last + 1, number))
        self._last = number
        if ended:
            self.patience.charge("calls without a body", _EMPTY_CALL)
        limits, streams = self._limits, self.streams
        if self._final or len(streams) >= limits.streams:
            self.patience.charge("refused streams", _LATE_FRAME)  # no fault: it may not know yet
            self._send_reset(number, codes.REFUSED_STREAM)
        elif not head.valid or (ended and head.length):
            self.patience.charge("faults")
            self._send_reset(number, PROTOCOL_ERROR)
        else:
            stream = ServerStream(self, number, self.control.initial_window, limits.stream_window, ended)
            streams[number] = stream
            if len(streams) > self._covered and not self._cover():
                self._calls.overload(stream)
            elif head.size > limits.header_list:
                self.patience.charge("header lists that are too large", 1 + len(block) / _BLOCK_BYTES)
                self._calls.refuse(stream, head.size, limits.header_list)
            else:
                receiver = self._calls.begin(stream, head.headers, ended)
                if stream.closed:  # it is answered by now
                    return
                if head.length is not None:
                    receiver = Measured(receiver, head.length, partial(self.refuse, number, PROTOCOL_ERROR))
                stream.receiver = receiver

    def _cover(self) -> bool:
        """Reserve memory for more open calls; return whether there is room."""
        covered = self._covered + _UNCOVERED
        if not self._calls_memory.grow((covered - _UNCOVERED) * UNCOUNTED):
            return False
        self._covered = covered
        return True

    def _head_of_known(self, number: int, head: Head, ended: bool) -> None:
        """Take trailers, which mean nothing to a server but the end."""
        stream = self.find(number)
        if stream is None and any(number in gap for gap in self._skipped):
            raise ConnectionFault(PROTOCOL_ERROR, "a stream with a number below that of a newer one")
        if stream is None and number in self._reset_here:
            self.patience.charge("frames of closed streams", _LATE_FRAME)
        elif stream is None or stream.ended:
            self.refuse(number, codes.STREAM_CLOSED)
        elif not ended or not are_trailers(head.headers):
            self.refuse(number, PROTOCOL_ERROR)
        else:
            stream.ended = True
            stream.receiver.data(b"", True)

    def _arrived(self, number: int, length: int, ended: bool) -> ServerStream | None:
        """Count bytes of DATA frames, and return whose they are, None if they are nobody's."""
        self._granted -= length
        if self._granted < 0:
            raise ConnectionFault(codes.FLOW_CONTROL_ERROR, "more data than the connection's window")
        stream = self.streams.get(number) or self.find(number)
        if stream is None and number in self._reset_here:  # the rest of its body was on its way
            self.patience.charge("frames of closed streams", _LATE_FRAME)
            self._free(length)
            return None
        if stream is None or stream.ended:
            self._free(length)
            self.refuse(number, codes.STREAM_CLOSED)
            return None
        stream.granted -= length
        if stream.granted < 0:
            self._free(length)
            self.refuse(number, codes.FLOW_CONTROL_ERROR)
            return None
        stream.ended = ended
        return stream

    def _free(self, count: int) -> None:
        self._freed += count
        if self._freed >= self._update_at:
            self.sender.control(frames.window_update(0, self._freed))
            self._granted += self._freed
            self._freed = 0
