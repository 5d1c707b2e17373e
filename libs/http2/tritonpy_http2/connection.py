"""The server side of one HTTP/2 connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tritonpy_http2 import codes, frames
from tritonpy_http2.abuse_limits import AbuseBudget, PingRules
from tritonpy_http2.calls import (
    UNCOUNTED,
    Http2Calls,
    MemoryAccount,
    Receiver,
    UnlimitedReservation,
)
from tritonpy_http2.codes import PROTOCOL_ERROR
from tritonpy_http2.control_frames import ControlFrames
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.frame_reader import Bytes, Http2FrameReader, Http2FrameSink
from tritonpy_http2.header_decoder import DecodedHeaders, HeaderBlockCache
from tritonpy_http2.header_frames import HeaderBlockAssembler
from tritonpy_http2.header_rules import are_trailers
from tritonpy_http2.limits import Http2Limits
from tritonpy_http2.sender import Sender
from tritonpy_http2.server_stream import LengthCheckedReceiver, ServerStream

_FREE_CALLS = 64  # open calls whose small buffers need no reservation
_EMPTY_CALL_COST = 2.0  # of a call without a body, unusual in gRPC; its response refunds 1
_LATE_FRAME_COST = 0.05  # of DATA after an early response, and of a refused stream
_BLOCK_BYTES = 1024  # a refused header block costs one more credit per so many bytes
_MAX_REMEMBERED = 1000  # entries each of `_locally_reset` and `_skipped_numbers`


class ServerConnection(Http2FrameSink):
    """Converts received bytes into calls. `sender` holds the output.

    `wake` is called when output is available. `clock` returns seconds.
    """

    __deletable__ = ("_reader", "control", "sender")  # read by mypyc

    def __init__(
        self,
        calls: Http2Calls,
        limits: Http2Limits,
        rules: PingRules,
        clock: Callable[[], float],
        wake: Callable[[], None],
        account: MemoryAccount | None = None,
        extra_info: Callable[[str, Any], Any] = lambda _name, default: default,
    ) -> None:
        self.account = account
        self.extra_info = extra_info
        self._calls_memory = UnlimitedReservation() if account is None else account.reservation()
        self._reserved_calls = _FREE_CALLS  # calls covered by the reservation
        self._calls = calls
        self._limits = limits
        self._update_at = limits.window // 2  # bytes after which a window update is sent
        self._blocks = HeaderBlockCache(limits.header_list, limits.largest_list, limits.huffman)
        self._reader = Http2FrameReader(self, limits.frame, limits.header_block)
        self._granted = limits.window  # bytes that the client may send
        self._freed = 0  # bytes released since the last window update
        self._newest = 0  # number of the newest stream
        # Stream numbers below `_newest` that were never used.
        self._skipped_numbers: deque[range] = deque(maxlen=_MAX_REMEMBERED)
        # Streams that the server has reset; the client may not have received the reset yet.
        self._locally_reset: dict[int, None] = {}
        self._is_final = False  # whether new streams are refused
        self._served_up_to = codes.LAST_STREAM  # last stream in the latest GOAWAY
        self._assembler = HeaderBlockAssembler(limits.header_block)
        self.streams: dict[int, ServerStream] = {}
        self.budget = AbuseBudget(clock)
        self.sender = Sender(wake, None if account is None else account.reservation())
        self.control = ControlFrames(self, rules, clock)
        self.over = False  # received data is ignored
        self.sender.control(frames.settings(limits.settings()))
        self.sender.control(frames.window_update(0, limits.window - codes.USUAL_WINDOW))

    def receive(self, data: Bytes) -> None:
        """Process received data."""
        if not self.over:
            try:
                self._reader.feed(data)
            except Http2ConnectionError as error:
                self.fail(error.code, error.text)

    def read_buffer(self) -> memoryview | None:
        """Return a buffer to read the next data into, or None if it must be passed to `receive`.

        Call `read_buffer_updated` after reading into it.
        """
        return None if self.over else self._reader.body_buffer()

    def read_buffer_updated(self, count: int) -> None:
        """Process `count` bytes in the buffer from `read_buffer`."""
        try:
            self._reader.body_buffer_updated(count)
        except Http2ConnectionError as error:
            self.fail(error.code, error.text)

    @property
    def finished(self) -> bool:
        """Whether the connection can be closed."""
        return self.over or (self._is_final and not self.streams)

    @property
    def activity(self) -> int:
        """A counter of calls and sent response parts."""
        return self._newest + self.sender.sends

    def unsent(self) -> int:
        """Return the number of response bytes that wait for flow control."""
        return sum(
            [stream.backlog.size for stream in self.streams.values() if stream.backlog is not None]
        )

    def fail(self, code: int, text: str) -> None:
        """End the connection with GOAWAY and reset the open calls."""
        if not self.over:
            self.sender.control(
                frames.goaway(min(self._newest, self._served_up_to), code, text.encode())
            )
            self.reset_calls()

    def reset_calls(self) -> None:
        """Reset all calls."""
        self.over = True
        for stream in list(self.streams.values()):
            self.forget(stream).reset()

    def close(self) -> None:
        """Reset all calls and break the reference cycles of the parts of this connection."""
        self.reset_calls()
        del self._reader, self.control, self.sender

    def start_draining(self, text: str) -> None:
        """Announce GOAWAY; refuse new calls after a ping round trip."""
        if not self._is_final:
            self.sender.control(frames.goaway(codes.LAST_STREAM, codes.NO_ERROR, text.encode()))
            self.control.ping(self.refuse_new_calls)

    def refuse_new_calls(self, text: str = "") -> None:
        """Refuse new calls and finish the open ones."""
        if not self._is_final and not self.over:
            self._is_final = True
            self._served_up_to = self._newest
            self.sender.control(frames.goaway(self._newest, codes.NO_ERROR, text.encode()))

    # Frames

    def headers(self, flags: int, stream: int, payload: bytes) -> None:
        if flags == codes.END_HEADERS:
            self._head(stream, payload, False)
            return
        if not stream:
            raise Http2ConnectionError(PROTOCOL_ERROR, "HEADERS without a stream")
        block = self._assembler.begin(flags, payload)
        if block is None:
            self._reader.continuing = stream
        else:
            self._head(stream, block, self._assembler.ended)

    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind != codes.CONTINUATION:
            self.control.take(kind, flags, stream, payload)
            return
        if not self._reader.continuing:
            raise Http2ConnectionError(PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self.budget.charge("continuations")
        block = self._assembler.continue_block(flags, payload)
        if block is not None:
            self._reader.continuing = 0
            self._head(stream, block, self._assembler.ended)

    def data(self, stream: int, part: Bytes, ended: bool) -> None:
        length = len(part)
        if not length and not ended:
            self.budget.charge("empty frames")
        found = self._receive_data(stream, length, ended)
        if found is not None:
            found.receiver.data(part, ended)
            self.release_window(found, length)

    def padding(self, stream: int, count: int) -> None:
        found = self._receive_data(stream, count, False)
        if found is not None:
            self.release_window(found, count)

    def body_buffer(self, stream: int) -> memoryview | None:
        found = self.streams.get(stream)
        return None if found is None or found.ended else found.receiver.body_buffer()

    def body_buffer_updated(self, stream: int, count: int, ended: bool) -> None:
        found = self._receive_data(stream, count, ended)
        if found is not None:
            found.receiver.body_buffer_updated(count, ended)
            self.release_window(found, count)

    # Streams

    def find(self, stream: int) -> ServerStream | None:
        """Return an open stream, None for a closed one.

        Raises Http2ConnectionError for an idle one.
        """
        found = self.streams.get(stream)
        if found is None and (stream > self._newest or not stream & 1):
            raise Http2ConnectionError(PROTOCOL_ERROR, "a frame on an idle stream")
        return found

    def refuse(self, stream: int, code: int) -> None:
        """Reset a stream for an error of the client.

        Raises Http2ConnectionError if that is too frequent.
        """
        self.budget.charge("faults")
        found = self.streams.get(stream)
        if found is not None:
            self._send_reset(stream, code)
            self.forget(found).reset()
        else:
            self.sender.control(frames.rst_stream(stream, code))

    def reset(self, stream: ServerStream, code: int) -> None:
        """Reset a stream for a reason of the server."""
        self._send_reset(stream.number, code)
        self.forget(stream)

    def _send_reset(self, stream: int, code: int) -> None:
        """Reset a stream and ignore data that the client sent before it received the reset."""
        self.sender.control(frames.rst_stream(stream, code))
        self._locally_reset[stream] = None
        if len(self._locally_reset) > _MAX_REMEMBERED:
            del self._locally_reset[next(iter(self._locally_reset))]

    def forget(self, stream: ServerStream) -> Receiver:
        """Remove a closed stream and return its receiver."""
        del self.streams[stream.number]
        stream.closed = True
        if stream.backlog is not None:
            self.sender.forget(stream)
        if self._reserved_calls > _FREE_CALLS and not self.streams:
            self._reserved_calls = _FREE_CALLS
            self._calls_memory.shrink()
        return stream.detach_receiver()

    def release_window(self, stream: ServerStream, count: int) -> None:
        """Release received bytes in the windows of the stream and the connection."""
        self._release_connection_window(count)
        if not stream.ended:  # most streams have ended by now
            self.extend_window(stream, count)

    def extend_window(self, stream: ServerStream, count: int) -> None:
        """Release received bytes in the window of a stream."""
        if stream.ended or stream.closed:
            return
        stream.freed += count
        if stream.freed >= self._limits.stream_window // 2:
            self.sender.control(frames.window_update(stream.number, stream.freed))
            stream.granted += stream.freed
            stream.freed = 0

    def _head(self, number: int, block: bytes, ended: bool) -> None:
        head = self._blocks.get(block) or self._blocks.decode(block)
        last = self._newest
        if number <= last or not number & 1:
            self._receive_trailers(number, head, ended)
            return
        if number > last + 2:
            self._skipped_numbers.append(range(last + 1, number))
        self._newest = number
        if ended:
            self.budget.charge("calls without a body", _EMPTY_CALL_COST)
        limits, streams = self._limits, self.streams
        if self._is_final or len(streams) >= limits.streams:
            # Cheap, because the client may not have received the limit yet.
            self.budget.charge("refused streams", _LATE_FRAME_COST)
            self._send_reset(number, codes.REFUSED_STREAM)
        elif not head.valid or (ended and head.length):
            self.budget.charge("faults")
            self._send_reset(number, PROTOCOL_ERROR)
        else:
            stream = ServerStream(
                self, number, self.control.initial_window, limits.stream_window, ended
            )
            streams[number] = stream
            if len(streams) > self._reserved_calls and not self._reserve_calls():
                self._calls.overload(stream)
            elif head.size > limits.header_list:
                self.budget.charge("header lists that are too large", 1 + len(block) / _BLOCK_BYTES)
                self._calls.refuse(stream, head.size, limits.header_list)
            else:
                receiver = self._calls.begin(stream, head.headers, ended)
                if stream.closed:  # the response is complete
                    return
                if head.length is not None:
                    receiver = LengthCheckedReceiver(
                        receiver, head.length, partial(self.refuse, number, PROTOCOL_ERROR)
                    )
                stream.receiver = receiver

    def _reserve_calls(self) -> bool:
        """Reserve memory for more open calls; return whether that succeeded."""
        covered = self._reserved_calls + _FREE_CALLS
        if not self._calls_memory.grow((covered - _FREE_CALLS) * UNCOUNTED):
            return False
        self._reserved_calls = covered
        return True

    def _receive_trailers(self, number: int, head: DecodedHeaders, ended: bool) -> None:
        """Process trailers: end the body and ignore their fields."""
        stream = self.find(number)
        if stream is None and any(number in gap for gap in self._skipped_numbers):
            raise Http2ConnectionError(PROTOCOL_ERROR, "a new stream with a lower number")
        if stream is None and number in self._locally_reset:
            self.budget.charge("frames of closed streams", _LATE_FRAME_COST)
        elif stream is None or stream.ended:
            self.refuse(number, codes.STREAM_CLOSED)
        elif not ended or not are_trailers(head.headers):
            self.refuse(number, PROTOCOL_ERROR)
        else:
            stream.ended = True
            stream.receiver.data(b"", True)

    def _receive_data(self, number: int, length: int, ended: bool) -> ServerStream | None:
        """Count received bytes of DATA frames and return their stream, None if it is closed."""
        self._granted -= length
        if self._granted < 0:
            raise Http2ConnectionError(
                codes.FLOW_CONTROL_ERROR, "more data than the connection window allows"
            )
        stream = self.streams.get(number) or self.find(number)
        if stream is None and number in self._locally_reset:  # the rest of the body was in flight
            self.budget.charge("frames of closed streams", _LATE_FRAME_COST)
            self._release_connection_window(length)
            return None
        if stream is None or stream.ended:
            self._release_connection_window(length)
            self.refuse(number, codes.STREAM_CLOSED)
            return None
        stream.granted -= length
        if stream.granted < 0:
            self._release_connection_window(length)
            self.refuse(number, codes.FLOW_CONTROL_ERROR)
            return None
        stream.ended = ended
        return stream

    def _release_connection_window(self, count: int) -> None:
        self._freed += count
        if self._freed >= self._update_at:
            self.sender.control(frames.window_update(0, self._freed))
            self._granted += self._freed
            self._freed = 0
