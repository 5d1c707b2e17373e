"""Frames that bring neither header lists nor bodies: settings, windows, pings, resets, farewells."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING

from tritonpy_frontend_h2.http2 import codes, frames
from tritonpy_frontend_h2.http2.codes import FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR
from tritonpy_frontend_h2.http2.faults import ConnectionFault
from tritonpy_frontend_h2.http2.ping_strikes import PingRules, PingStrikes

if TYPE_CHECKING:
    from tritonpy_frontend_h2.http2.connection import Connection

_SETTING = Struct(">HI")
_WINDOW = 0x7FFFFFFF
_PAYLOAD = Struct(">Q")
_RESET = (
    0.05  # of what others cost: clients give up all their calls at once, as many as may be open, when a deadline passes
)
_MOST_SETTINGS = 256  # of one frame: HTTP/2 has a dozen
_SETTING_COST = 0.05
_UPDATES_FOR_EACH = (
    64  # window updates that a call or a part of an answer explains, which has at most 16 frames of 16 KiB
)
_MOST_UPDATES = 10_000
_WIDENING = 0.001  # for each stream, whose window changes with the settings


class ControlFrames:
    """What they do to a connection."""

    def __init__(self, connection: Connection, rules: PingRules, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._strikes = PingStrikes(rules)
        self._clock = clock
        self._pings: dict[bytes, Callable[[], None]] = {}
        self._pinged = 0
        self._sends = 0  # parts of answers before the last ping of the client
        self._settings_sent = True  # and the client did not acknowledge them yet
        self._updates = _UPDATES_FOR_EACH  # window updates that the client may send free of charge
        self._activity = 0  # calls and parts of answers before the last window update
        self.greeted = False  # the client's settings came
        self.initial_window = codes.USUAL_WINDOW

    def take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Take a frame; one of an unknown kind is ignored. Raises ConnectionFault where it may not be."""
        take = _KINDS.get(kind)
        if take is None:
            self._connection.patience.charge("unknown frames")
        else:
            take(self, flags, stream, payload)

    def ping(self, answered: Callable[[], None]) -> None:
        """Ask for a sign of life; `answered` is called when it comes."""
        self._pinged += 1
        payload = _PAYLOAD.pack(self._pinged)
        self._pings[payload] = answered
        self._connection.sender.control(frames.ping(payload, ack=False))

    def _priority(self, _flags: int, stream: int, payload: bytes) -> None:
        self._connection.patience.charge("priorities")
        if not stream:
            raise ConnectionFault(PROTOCOL_ERROR, "a priority without a stream")
        if len(payload) != 5:
            self._connection.refuse(stream, FRAME_SIZE_ERROR)

    def _rst_stream(self, _flags: int, stream: int, payload: bytes) -> None:
        _expect(payload, 4)
        self._connection.patience.charge("resets", _RESET)
        found = self._connection.find(stream)
        if found is not None:
            self._connection.forget(found).reset()

    def _settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise ConnectionFault(PROTOCOL_ERROR, "settings of a stream")
        if flags & codes.ACK:
            _expect(payload, 0)
            if not self._settings_sent:
                self._connection.patience.charge("acknowledgements")
            self._settings_sent = False
            return
        if len(payload) % _SETTING.size:
            raise ConnectionFault(FRAME_SIZE_ERROR, "settings of another length")
        count = len(payload) // _SETTING.size
        if count > _MOST_SETTINGS:
            raise ConnectionFault(codes.ENHANCE_YOUR_CALM, "too many settings")
        cost = 1 + count * _SETTING_COST + len(self._connection.streams) * _WIDENING
        self._connection.patience.charge("settings", cost)
        self.greeted = True
        self._connection.sender.control(frames.SETTINGS_ACK)  # ahead of the data that they allow
        before = self.initial_window
        for name, value in _SETTING.iter_unpack(payload):
            self._apply(name, value)
        self._widen_all(self.initial_window - before)  # once, however often the frame says it

    def _apply(self, name: int, value: int) -> None:
        if name == codes.INITIAL_WINDOW_SIZE:
            if value > codes.LARGEST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "a window that is too large")
            self.initial_window = value
        elif name == codes.HEADER_TABLE_SIZE:
            if value < codes.USUAL_TABLE_SIZE:
                self._connection.sender.empty_table()
        elif name == codes.MAX_FRAME_SIZE:
            if not codes.SMALLEST_FRAME_LIMIT <= value <= codes.LARGEST_FRAME_LIMIT:
                raise ConnectionFault(PROTOCOL_ERROR, "a frame size that cannot be")
            self._connection.sender.frame_limit = value
        elif name == codes.ENABLE_PUSH and value > 1:
            raise ConnectionFault(PROTOCOL_ERROR, "a switch that is neither on nor off")

    def _widen_all(self, more: int) -> None:
        sender = self._connection.sender
        for stream in list(self._connection.streams.values()) if more else ():
            if not sender.widen(stream, more):
                raise ConnectionFault(FLOW_CONTROL_ERROR, "a window that is too large")

    def _push_promise(self, _flags: int, _stream: int, _payload: bytes) -> None:
        raise ConnectionFault(PROTOCOL_ERROR, "a promise of a client")

    def _ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise ConnectionFault(PROTOCOL_ERROR, "a ping of a stream")
        _expect(payload, 8)
        if flags & codes.ACK:
            answered = self._pings.pop(payload, None)
            if answered is not None:
                answered()
            else:
                self._connection.patience.charge("acknowledgements")
            return
        connection = self._connection
        sends = connection.sender.sends
        if sends == self._sends:  # others measure how fast answers come
            connection.patience.charge("pings")
        if self._strikes.is_too_many(self._clock(), sends, idle=not connection.streams):
            raise ConnectionFault(codes.ENHANCE_YOUR_CALM, "too_many_pings")
        self._sends = sends
        connection.sender.control(frames.ping(payload, ack=True))

    def _goaway(self, _flags: int, stream: int, payload: bytes) -> None:
        """Take note of nothing: its streams are answered, and the client closes the connection."""
        if stream:
            raise ConnectionFault(PROTOCOL_ERROR, "a farewell of a stream")
        if len(payload) < 8:
            raise ConnectionFault(FRAME_SIZE_ERROR, "a farewell that is too short")
        self._connection.patience.charge("farewells")

    def _window_update(self, _flags: int, stream: int, payload: bytes) -> None:
        _expect(payload, 4)
        self._charge_update()
        count = int.from_bytes(payload, "big") & _WINDOW
        sender = self._connection.sender
        if not stream:
            if not count:
                raise ConnectionFault(PROTOCOL_ERROR, "a window that grows by nothing")
            if not sender.widen(None, count):
                raise ConnectionFault(FLOW_CONTROL_ERROR, "a window that is too large")
            return
        found = self._connection.find(stream)
        if found is None:
            return
        if not count:
            self._connection.refuse(stream, PROTOCOL_ERROR)
        elif not sender.widen(found, count):
            self._connection.refuse(stream, FLOW_CONTROL_ERROR)

    def _charge_update(self) -> None:
        """Take credit for a window update that nothing explains: neither a new call nor a part of an answer."""
        activity = self._connection.activity
        if activity != self._activity:
            more = (activity - self._activity) * _UPDATES_FOR_EACH
            self._updates = min(self._updates + more, _MOST_UPDATES)
            self._activity = activity
        if self._updates > 0:
            self._updates -= 1
        else:
            self._connection.patience.charge("window updates")


# By class, not by object: bound methods that an object keeps are a reference cycle.
_KINDS: dict[int, Callable[[ControlFrames, int, int, bytes], None]] = {
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
        raise ConnectionFault(FRAME_SIZE_ERROR, "a frame of another length")
