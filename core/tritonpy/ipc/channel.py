"""The socket to the server, as the threads of a worker share it.

There is no thread that reads. Whoever waits for something from the server reads the socket for all (the *leader*), and the others sleep until
the leader has something for them or leaves. So in the common case the main thread reads a request, executes it and answers it, and
no thread is ever switched.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, get_ident
from typing import Any, NoReturn

from .descriptors import CLOSE_ON_EXEC, ROOM, arrived, close_all
from .endpoint import PLAIN_DTYPES, Endpoint
from .frame import Frame, ProtocolError
from .patience import Patience
from .waiter import Waiter

_CHUNK = 1 << 16
_WITHOUT_WAITING = int(socket.MSG_DONTWAIT)  # the flag itself is an enum, whose operators cost as much as the call
_Arrival = tuple[bytes, list[tuple[int, int, bytes]], int, Any]  # what recvmsg returns


class ChannelClosed(Exception):
    """There is no way to the server: this is a process that the model forked, or the end is near."""


class Channel:
    """Frames to and from the server; every method may be called from any thread.

    `lost(reason)` is called when the server is gone (an empty reason) or talks nonsense; it must not return.
    A handler is called for each frame of its kind, in the order of arrival, by the thread that leads: it must neither wait nor
    call the model's code. `dtypes` and `on_return` are the endpoint's. While it is `patient`, the thread that reads may look at the socket for
    a moment before it sleeps.
    """

    def __init__(
        self,
        connection: socket.socket,
        lost: Callable[[str], NoReturn],
        dtypes: Mapping[str, Any] = PLAIN_DTYPES,
        on_return: Callable[[], None] | None = None,
    ) -> None:
        self._socket = connection
        self._lost = lost
        self._closed = False
        self._endpoint = Endpoint(dtypes, on_return)
        self._handlers: dict[int, Callable[[Frame], None]] = {}
        self._sending = Lock()
        self._sender = 0  # the thread that holds it
        self._postponed: deque[tuple[Any, ...]] = deque()
        self.patient = False
        self._reading = Lock()  # held by the leader
        self._patience = Patience()
        self._followers: list[Waiter] = []
        self._substitute: tuple[Waiter, Callable[[], object]] | None = None

    def on(self, kind: int, handler: Callable[[Frame], None]) -> None:
        """Have `handler` called for frames of `kind`."""
        self._handlers[kind] = handler

    def set_substitute(self, waiter: Waiter, needed: Callable[[], object]) -> None:
        """Have `waiter` woken when there is no leader and `needed()` is true: that thread then calls `lead`."""
        self._substitute = (waiter, needed)

    def send(
        self,
        kind: int,
        words: Sequence[int] = (),
        rows: Sequence[Sequence[Any]] | None = None,
        wants: Sequence[tuple[str, ...] | None] | None = None,
        extras: Mapping[str, Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Send one frame; `descriptors` are closed once they are sent.

        Raises ChannelClosed, and OSError or MemoryError where shared memory cannot be had: then nothing was sent.
        """
        if self._closed:
            raise ChannelClosed
        frame = (kind, words, rows, wants, extras, descriptors)
        if self._sender == get_ident():  # a destructor runs in the middle of a frame
            self._postponed.append(frame)
            return
        with self._sending:
            self._sender = get_ident()
            try:
                self._write(*self._endpoint.compose(*frame))
            finally:
                self._sender = 0
        if self._postponed:
            self._send_postponed()

    def send_returns(self) -> None:
        """Hand back shared memory of the server that is not needed any more, if there is any."""
        with self._sending:
            self._sender = get_ident()
            try:
                data = self._endpoint.compose_returns()
                if data:
                    self._write(data, ())
            finally:
                self._sender = 0
        if self._postponed:
            self._send_postponed()

    def rows(self, frame: Frame, at: int, make: Callable[..., Any]) -> tuple[list[Any], list[tuple[str, ...] | None]]:
        """Return the tensors in a frame and what each row asks for; only the handler of that frame may call it."""
        return self._endpoint.rows(frame, at, make)

    def wait(self, waiter: Waiter, done: Callable[[], object]) -> None:
        """Wait until `done()` is true, reading for all where nobody does. `waiter` is the calling thread's.

        Whoever makes it true must wake `waiter`, unless a frame that this thread reads does it.
        """
        while not self.lead(done):
            self._followers.append(waiter)
            try:
                if self._reading.locked() and not done():
                    waiter.sleep()
            finally:
                self._followers.remove(waiter)
        if not self._reading.locked():
            self.call_leader()

    def lead(self, done: Callable[[], object]) -> bool:
        """Read for all until `done()` is true; return False at once where another thread reads."""
        while not done():
            if not self._reading.acquire(blocking=False):
                return False
            try:
                while not done():
                    self._read()
            finally:
                self._reading.release()
        return True

    def drain(self) -> None:
        """Handle what has arrived, without waiting; nothing happens where another thread reads."""
        if self._reading.acquire(blocking=False):
            try:
                while (arrival := self._look()) is not None:
                    self._feed(arrival)
            finally:
                self._reading.release()
            self.call_leader()

    def call_leader(self) -> None:
        """Wake somebody to lead, where somebody waits."""
        followers = self._followers[:1]
        if followers:
            followers[0].wake()
        elif self._substitute is not None and self._substitute[1]():
            self._substitute[0].wake()

    @property
    def unused_bytes(self) -> int:
        """How much shared memory is kept for the next frames."""
        return self._endpoint.unused_bytes

    @property
    def closed(self) -> bool:
        """Whether there is no way to the server: then nothing that it would say may be waited for."""
        return self._closed

    def has_leader(self) -> bool:
        """Say whether a thread reads the socket now."""
        return self._reading.locked()

    def has_followers(self) -> bool:
        """Say whether threads wait while another reads."""
        return bool(self._followers)

    def close(self) -> None:
        """Leave: in a process that was forked, so that it neither holds the socket open nor reads from it."""
        self._closed = True
        self._socket.close()

    def _send_postponed(self) -> None:
        with suppress(IndexError):  # another thread was faster
            while True:
                self.send(*self._postponed.popleft())

    def _read(self) -> None:
        self._feed(self._patience.wait(self._look, self._receive) if self.patient else self._receive())

    def _look(self) -> _Arrival | None:
        try:
            return self._receive(_WITHOUT_WAITING)
        except BlockingIOError:
            return None

    def _receive(self, flags: int = 0) -> _Arrival:
        try:
            return self._socket.recvmsg(_CHUNK, ROOM, flags | CLOSE_ON_EXEC)
        except BlockingIOError:
            raise
        except OSError:  # the server was killed with data of ours unread
            return b"", [], 0, None

    def _feed(self, arrival: _Arrival) -> None:
        data, control = arrival[:2]
        if not data:
            self._lost("")
        try:
            # A copy that can be written to: models change their inputs in place.
            for frame in self._endpoint.feed(bytearray(data), arrived(control) if control else ()):
                handler = self._handlers.get(frame.kind)
                if handler is None:
                    self._lost(f"a frame of kind {frame.kind} came")
                handler(frame)
        except ProtocolError as error:
            self._lost(str(error))

    def _write(self, data: bytes, descriptors: Sequence[int]) -> None:
        try:
            if descriptors:
                data = data[socket.send_fds(self._socket, [data], descriptors) :]
            if data:  # even nothing is refused by an end that has read everything and gone
                self._socket.sendall(data)
        except OSError:
            self._lost("")
        finally:
            close_all(descriptors)
