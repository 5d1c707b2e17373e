"""The worker's socket to the server, shared by the threads of the worker.

No thread is dedicated to reading. The threads follow the leader/followers pattern: a thread that
waits for the server reads the socket for all threads (the *leader*). The others sleep until the
leader has something for them or stops reading. In the common case, the main thread reads a request,
executes it and responds, without any thread switch.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, get_ident
from typing import Any, NoReturn

from .descriptors import ANCILLARY_SIZE, CLOSE_ON_EXEC, close_all, received_descriptors
from .endpoint import PLAIN_DTYPES, Endpoint
from .frame import Frame, ProtocolError
from .spin_wait import SpinWait
from .waiter import Waiter

_CHUNK = 1 << 16
# A plain int: operators of the enum cost as much as the call.
_WITHOUT_WAITING = int(socket.MSG_DONTWAIT)
_Arrival = tuple[bytes, list[tuple[int, int, bytes]], int, Any]  # return type of recvmsg


class ChannelClosed(Exception):
    """The channel to the server is closed: in a forked process, or during shutdown."""


class Channel:
    """Send and receive frames; every method may be called from any thread.

    `lost(reason)` is called when the server is gone (empty reason) or breaks the protocol; it must
    not return. The leader calls the handler of each frame in order of arrival. A handler must
    neither block nor call the model's code. `dtypes` and `on_return` are passed to the `Endpoint`.
    If `may_spin` is set, the leader may poll the socket for a short time before it sleeps.
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
        self._sender = 0  # id of the thread that holds the lock
        self._postponed: deque[tuple[Any, ...]] = deque()
        self.may_spin = False
        self._reading = Lock()  # held by the leader
        self._spin_wait = SpinWait()
        self._followers: list[Waiter] = []
        self._standby: tuple[Waiter, Callable[[], object]] | None = None

    def on(self, kind: int, handler: Callable[[Frame], None]) -> None:
        """Register `handler` for frames of `kind`."""
        self._handlers[kind] = handler

    def set_standby(self, waiter: Waiter, needed: Callable[[], object]) -> None:
        """Register a standby reader.

        `waiter` is woken when no thread leads and `needed()` is true. Its thread then calls
        `read_until`.
        """
        self._standby = (waiter, needed)

    def send(
        self,
        kind: int,
        words: Sequence[int] = (),
        rows: Sequence[Sequence[Any]] | None = None,
        requested: Sequence[tuple[str, ...] | None] | None = None,
        extras: Mapping[str, Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Send one frame; `descriptors` are closed once they are sent.

        `rows` are the tensors, `requested` the outputs that each row requests. Raises
        `ChannelClosed`, and `OSError` or `MemoryError` if shared memory cannot be allocated.
        Nothing is sent then.
        """
        if self._closed:
            raise ChannelClosed
        frame = (kind, words, rows, requested, extras, descriptors)
        if self._sender == get_ident():  # a destructor runs while this thread writes a frame
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
        """Return shared memory of the server that is no longer in use, if any."""
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

    def rows(
        self, frame: Frame, at: int, make: Callable[..., Any]
    ) -> tuple[list[Any], list[tuple[str, ...] | None]]:
        """Return tensors and requested outputs of each row; call it in the frame's handler only."""
        return self._endpoint.rows(frame, at, make)

    def wait(self, waiter: Waiter, done: Callable[[], object]) -> None:
        """Wait until `done()` is true; read for all threads if no other thread does.

        `waiter` belongs to the calling thread. Code that makes `done()` true must wake it, unless
        it runs in a handler on this thread.
        """
        while not self.read_until(done):
            self._followers.append(waiter)
            try:
                if self._reading.locked() and not done():
                    waiter.sleep()
            finally:
                self._followers.remove(waiter)
        if not self._reading.locked():
            self.wake_leader()

    def read_until(self, done: Callable[[], object]) -> bool:
        """Read for all threads until `done()` is true; return False if another thread reads."""
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
        """Handle the frames that have arrived without blocking, unless another thread reads."""
        if self._reading.acquire(blocking=False):
            try:
                while (arrival := self._poll()) is not None:
                    self._feed(arrival)
            finally:
                self._reading.release()
            self.wake_leader()

    def wake_leader(self) -> None:
        """Wake a waiting thread to become the leader, if there is one."""
        followers = self._followers[:1]
        if followers:
            followers[0].wake()
        elif self._standby is not None and self._standby[1]():
            self._standby[0].wake()

    @property
    def unused_bytes(self) -> int:
        """Bytes of shared memory kept for the next frames."""
        return self._endpoint.unused_bytes

    @property
    def closed(self) -> bool:
        """Whether the channel is closed, so that no response of the server may be awaited."""
        return self._closed

    def has_leader(self) -> bool:
        """Return whether a thread reads the socket now."""
        return self._reading.locked()

    def has_followers(self) -> bool:
        """Return whether threads wait while another thread reads."""
        return bool(self._followers)

    def close(self) -> None:
        """Close the socket in a forked process, which must neither read it nor keep it open."""
        self._closed = True
        self._socket.close()

    def _send_postponed(self) -> None:
        with suppress(IndexError):  # another thread has sent it
            while True:
                self.send(*self._postponed.popleft())

    def _read(self) -> None:
        self._feed(
            self._spin_wait.wait(self._poll, self._receive) if self.may_spin else self._receive()
        )

    def _poll(self) -> _Arrival | None:
        try:
            return self._receive(_WITHOUT_WAITING)
        except BlockingIOError:
            return None

    def _receive(self, flags: int = 0) -> _Arrival:
        try:
            return self._socket.recvmsg(_CHUNK, ANCILLARY_SIZE, flags | CLOSE_ON_EXEC)
        except BlockingIOError:
            raise
        except OSError:  # the server was killed while data of ours was unread
            return b"", [], 0, None

    def _feed(self, arrival: _Arrival) -> None:
        data, control = arrival[:2]
        if not data:
            self._lost("")
        try:
            # A writable copy: models change their inputs in place.
            for frame in self._endpoint.feed(
                bytearray(data), received_descriptors(control) if control else ()
            ):
                handler = self._handlers.get(frame.kind)
                if handler is None:
                    self._lost(f"received an unexpected frame of kind {frame.kind}")
                handler(frame)
        except ProtocolError as error:
            self._lost(str(error))

    def _write(self, data: bytes, descriptors: Sequence[int]) -> None:
        try:
            if descriptors:
                data = data[socket.send_fds(self._socket, [data], descriptors) :]
            if data:  # an end that has gone refuses even an empty write
                self._socket.sendall(data)
        except OSError:
            self._lost("")
        finally:
            close_all(descriptors)
