"""Handling of control frames: SETTINGS, WINDOW_UPDATE, PING, RST_STREAM, GOAWAY and PRIORITY."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Protocol

from tritonpy_http2 import codes, frames
from tritonpy_http2.abuse_limits import PingRules, PingStrikeCounter
from tritonpy_http2.codes import FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR
from tritonpy_http2.errors import Http2ConnectionError
from tritonpy_http2.server_stream import ServerStream, StreamOwner

_SETTING = Struct(">HI")
_WINDOW = 0x7FFFFFFF
_PAYLOAD = Struct(">Q")
_RESET_COST = 0.05  # low, because clients may cancel all open calls at once when a deadline passes
_MAX_SETTINGS = 256  # per frame; HTTP/2 defines a dozen
_SETTING_COST = 0.05
_UPDATES_FOR_EACH = (
    64  # free window updates per call and response part, which has at most 16 frames of 16 KiB
)
_MAX_UPDATES = 10_000
_STREAM_COST = 0.001  # per stream, whose window changes with the settings


class ControlledConnection(StreamOwner, Protocol):
    """The interface of a connection for its control frames."""

    streams: dict[int, ServerStream]

    @property
    def activity(self) -> int:
        """A counter of calls and sent response parts."""

    def find(self, stream: int) -> ServerStream | None:
        """Return an open stream, None for a closed one.

        Raises Http2ConnectionError for an idle one.
        """

    def refuse(self, stream: int, code: int) -> None:
        """Reset a stream for an error of the client.

        Raises Http2ConnectionError if that is too frequent.
        """


class ControlFrames:
    """Handles the control frames of a connection."""

    def __init__(
        self, connection: ControlledConnection, rules: PingRules, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._strikes = PingStrikeCounter(rules)
        self._clock = clock
        self._pings: dict[bytes, Callable[[], None]] = {}
        self._pinged = 0
        self._sends = 0  # sent response parts at the last ping of the client
        self._settings_sent = True  # false after the client has acknowledged them
        self._updates = _UPDATES_FOR_EACH  # remaining free window updates
        self._activity = 0  # activity at the last window update
        self.has_settings = False  # whether the client's settings were received
        self.initial_window = codes.USUAL_WINDOW

    def take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Handle a frame; unknown types are ignored. Raises Http2ConnectionError."""
        take = _HANDLERS.get(kind)
        if take is None:
            self._connection.budget.charge("unknown frames")
        else:
            take(self, flags, stream, payload)

    def ping(self, on_ack: Callable[[], None]) -> None:
        """Send a ping; `on_ack` is called on its acknowledgement."""
        self._pinged += 1
        payload = _PAYLOAD.pack(self._pinged)
        self._pings[payload] = on_ack
        self._connection.sender.control(frames.ping(payload, ack=False))

    def _priority(self, _flags: int, stream: int, payload: bytes) -> None:
        self._connection.budget.charge("priorities")
        if not stream:
            raise Http2ConnectionError(PROTOCOL_ERROR, "PRIORITY without a stream")
        if len(payload) != 5:
            self._connection.refuse(stream, FRAME_SIZE_ERROR)

    def _rst_stream(self, _flags: int, stream: int, payload: bytes) -> None:
        _expect(payload, 4)
        self._connection.budget.charge("resets", _RESET_COST)
        found = self._connection.find(stream)
        if found is not None:
            self._connection.forget(found).reset()

    def _settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise Http2ConnectionError(PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & codes.ACK:
            _expect(payload, 0)
            if not self._settings_sent:
                self._connection.budget.charge("acknowledgements")
            self._settings_sent = False
            return
        if len(payload) % _SETTING.size:
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "SETTINGS of an invalid length")
        count = len(payload) // _SETTING.size
        if count > _MAX_SETTINGS:
            raise Http2ConnectionError(codes.ENHANCE_YOUR_CALM, "too many settings")
        cost = 1 + count * _SETTING_COST + len(self._connection.streams) * _STREAM_COST
        self._connection.budget.charge("settings", cost)
        self.has_settings = True
        self._connection.sender.control(frames.SETTINGS_ACK)  # before any data that they allow
        before = self.initial_window
        for name, value in _SETTING.iter_unpack(payload):
            self._apply(name, value)
        self._extend_all(self.initial_window - before)  # applied once per frame

    def _apply(self, name: int, value: int) -> None:
        if name == codes.INITIAL_WINDOW_SIZE:
            if value > codes.LARGEST_WINDOW:
                raise Http2ConnectionError(FLOW_CONTROL_ERROR, "a window above 2^31-1")
            self.initial_window = value
        elif name == codes.HEADER_TABLE_SIZE:
            if value < codes.USUAL_TABLE_SIZE:
                self._connection.sender.empty_table()
        elif name == codes.MAX_FRAME_SIZE:
            if not codes.SMALLEST_FRAME_LIMIT <= value <= codes.LARGEST_FRAME_LIMIT:
                raise Http2ConnectionError(PROTOCOL_ERROR, "an invalid maximum frame size")
            self._connection.sender.frame_limit = value
        elif name == codes.ENABLE_PUSH and value > 1:
            raise Http2ConnectionError(PROTOCOL_ERROR, "an invalid ENABLE_PUSH")

    def _extend_all(self, more: int) -> None:
        sender = self._connection.sender
        for stream in list(self._connection.streams.values()) if more else ():
            if not sender.extend_window(stream, more):
                raise Http2ConnectionError(FLOW_CONTROL_ERROR, "a window above 2^31-1")

    def _push_promise(self, _flags: int, _stream: int, _payload: bytes) -> None:
        raise Http2ConnectionError(PROTOCOL_ERROR, "PUSH_PROMISE from a client")

    def _ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise Http2ConnectionError(PROTOCOL_ERROR, "PING on a stream")
        _expect(payload, 8)
        if flags & codes.ACK:
            on_ack = self._pings.pop(payload, None)
            if on_ack is not None:
                on_ack()
            else:
                self._connection.budget.charge("acknowledgements")
            return
        connection = self._connection
        sends = connection.sender.sends
        if sends == self._sends:  # pings during responses measure the bandwidth
            connection.budget.charge("pings")
        if self._strikes.record_ping(self._clock(), sends, idle=not connection.streams):
            raise Http2ConnectionError(codes.ENHANCE_YOUR_CALM, "too_many_pings")
        self._sends = sends
        connection.sender.control(frames.ping(payload, ack=True))

    def _goaway(self, _flags: int, stream: int, payload: bytes) -> None:
        """Ignore GOAWAY: open streams finish and the client closes the connection."""
        if stream:
            raise Http2ConnectionError(PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "GOAWAY of an invalid length")
        self._connection.budget.charge("GOAWAY frames")

    def _window_update(self, _flags: int, stream: int, payload: bytes) -> None:
        _expect(payload, 4)
        self._charge_update()
        count = int.from_bytes(payload, "big") & _WINDOW
        sender = self._connection.sender
        if not stream:
            if not count:
                raise Http2ConnectionError(PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
            if not sender.extend_window(None, count):
                raise Http2ConnectionError(FLOW_CONTROL_ERROR, "a window above 2^31-1")
            return
        found = self._connection.find(stream)
        if found is None:
            return
        if not count:
            self._connection.refuse(stream, PROTOCOL_ERROR)
        elif not sender.extend_window(found, count):
            self._connection.refuse(stream, FLOW_CONTROL_ERROR)

    def _charge_update(self) -> None:
        """Charge a window update, unless it is one of the free ones per call and response part."""
        activity = self._connection.activity
        if activity != self._activity:
            more = (activity - self._activity) * _UPDATES_FOR_EACH
            self._updates = min(self._updates + more, _MAX_UPDATES)
            self._activity = activity
        if self._updates > 0:
            self._updates -= 1
        else:
            self._connection.budget.charge("window updates")


# Functions of the class: bound methods on the object would be a reference cycle.
_HANDLERS: dict[int, Callable[[ControlFrames, int, int, bytes], None]] = {
    codes.PRIORITY: ControlFrames._priority,
    codes.RST_STREAM: ControlFrames._rst_stream,
    codes.SETTINGS: ControlFrames._settings,
    codes.PUSH_PROMISE: ControlFrames._push_promise,
    codes.PING: ControlFrames._ping,
    codes.GOAWAY: ControlFrames._goaway,
    codes.WINDOW_UPDATE: ControlFrames._window_update,
}


def _expect(payload: bytes, length: int) -> None:
    if len(payload) != length:
        raise Http2ConnectionError(FRAME_SIZE_ERROR, "a frame of an invalid length")
