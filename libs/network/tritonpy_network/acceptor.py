"""Connections of frontends: accepting with file descriptors in reserve, and delivery at the end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import functools
import logging
import socket
import ssl
import sys
import termios
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

_ACCEPTS_AT_ONCE = 64  # connections per event-loop iteration during a burst
# connections within this time form a burst; otherwise a second accept() is a wasted system call
_BURST_S = 0.0001
_RETRY_S = 0.1  # after accept() failed for lack of resources
_EVICTION_S = 0.002  # until evicted connections have released their descriptors
_EVICTION_CHECKS = 50
_WARN_EVERY_S = 10.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RESERVED_SHARE = 4  # one in this many descriptors is kept in reserve
_SMALLEST_RESERVE = 16
_LARGEST_RESERVE = 1024
_GUARANTEED = 8  # connections that each listener may have when no other descriptors are left
_EVICTED_SHARE = 16  # one in this many idle connections is closed when descriptors run out
PERIOD_S = 0.05
STALL_TIMEOUT_S = 5.0  # a client that reads nothing for this long is not waited for
_acceptors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Acceptor]] = (
    weakref.WeakKeyDictionary()
)


class Evictable(ABC):
    """A connection that may be closed while it is idle, to free its descriptor."""

    __slots__ = ()

    @abstractmethod
    def idle_since(self) -> float | None:
        """Return when the connection became idle, by the event loop's clock.

        Returns None while the server owes it a response. A connection without a complete request is
        idle.
        """

    @abstractmethod
    def evict(self) -> None:
        """Close the connection."""


class Descriptors:
    """The descriptors that connections may use: all below `limit`, except for the reserve.

    The kernel assigns the lowest free number. A number of at least `ceiling` therefore means that
    at least `ceiling` descriptors are open. New connections then replace idle ones or are refused.
    This keeps the reserve free for models, workers and files.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        reserve = min(max(limit // _RESERVED_SHARE, _SMALLEST_RESERVE), _LARGEST_RESERVE)
        self.ceiling = limit - reserve
        self.guaranteed = max(1, min(_GUARANTEED, reserve // _GUARANTEED))

    @classmethod
    def of_process(cls) -> Descriptors:
        """Return the descriptors of this process."""
        try:
            import resource
        except ImportError:  # no such limit on this platform
            return cls(2**31)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return cls(2**31 if limit == resource.RLIM_INFINITY else limit)


class Acceptor:
    """Accepts connections from listening sockets on the running event loop.

    `make` returns the protocol of a connection. With `connect`, a coroutine function, accepted
    sockets go to it instead; it may be cancelled while it runs. `connections` are the open ones.
    When descriptors run low, the longest idle connections of the listener with the most idle ones
    are closed. If none is idle, new connections get `refusal` and are closed, except for a
    guaranteed number per listener.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], asyncio.BaseProtocol] | None,
        connections: Collection[object],
        log: logging.Logger,
        tls: ssl.SSLContext | None = None,
        handshake_s: float = 60.0,
        refusal: bytes = b"",
        descriptors: Descriptors | None = None,
        connect: Callable[[socket.socket], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._name = name
        self._connect = connect or self._connect_protocol
        self._make = make
        self._can_cancel_handshakes = tls is not None or connect is not None
        self._connections = connections  # open connections; `Evictable` ones may be closed
        self._log = log
        self._tls = tls
        self._handshake_s = handshake_s
        self._refusal = b"" if tls else refusal
        self._descriptors = descriptors or Descriptors.of_process()
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        # connections in their handshake, with start times
        self._handshakes: dict[asyncio.Task[None], float] = {}
        self._parked: dict[
            socket.socket, socket.socket
        ] = {}  # accepted connections that wait for a descriptor, by listening socket
        self._accepted_at = 0.0
        self._warn_at = 0.0
        _acceptors.setdefault(self._loop, []).append(self)

    def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Accept from `sockets`, which must be non-blocking and listening. `close` closes them."""
        for listening in sockets:
            self._sockets.append(listening)
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accept the connections that the kernel has completed, and stop listening.

        Connections that are not accepted would be reset.
        """
        if self in _acceptors.get(self._loop, ()):
            _acceptors[self._loop].remove(self)
        sockets, self._sockets = self._sockets, []
        self._descriptors = Descriptors(2**31)  # the last connections are always accepted
        for listening in sockets:
            self._loop.remove_reader(listening)
            while self._accept(listening):
                pass
            listening.close()
        for accepted in self._parked.values():
            self._start_connection(accepted)
        self._parked.clear()

    async def closed(self) -> None:
        """Return when no connection is in its handshake. Call it after `close`."""
        for task in list(self._handshakes) if self._can_cancel_handshakes else ():
            task.cancel()
        if self._handshakes:
            await asyncio.wait(set(self._handshakes))

    def idle(self) -> list[tuple[float, Callable[[], object]]]:
        """Return the start of idleness and a close function of each idle connection."""
        found: list[tuple[float, Callable[[], object]]] = [
            (since, task.cancel)
            for task, since in self._handshakes.items()
            if self._can_cancel_handshakes
        ]
        for connection in self._connections:
            if isinstance(connection, Evictable):
                since = connection.idle_since()
                if since is not None:
                    found.append((since, connection.evict))
        return found

    def _accept(self, listening: socket.socket) -> bool:
        """Accept waiting connections, up to a limit. Return whether more may wait."""
        now = self._loop.time()
        count, self._accepted_at = (
            _ACCEPTS_AT_ONCE if now - self._accepted_at < _BURST_S else 1,
            now,
        )
        for _ in range(count):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    # pause, since the kernel would report the same connection again immediately
                    self._close_idle()
                    self._pause(listening)
                    self._loop.call_later(_RETRY_S, self._resume, listening)
                    return False
                raise
            if accepted.fileno() >= self._descriptors.ceiling:
                return self._free_descriptors(listening, accepted)
            self._start_connection(accepted)
        return True

    def adopt(self, accepted: socket.socket) -> None:
        """Serve a connection that another listener accepted, within this listener's limits."""
        if accepted.fileno() >= self._descriptors.ceiling and not self._is_guaranteed():
            self._refuse(accepted)
        else:
            self._start_connection(accepted)

    def _start_connection(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        task = self._loop.create_task(self._run(accepted))
        self._handshakes[task] = self._loop.time()
        task.add_done_callback(functools.partial(self._connection_started, accepted))

    def _connection_started(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        del self._handshakes[task]
        if task.cancelled():  # possibly before it ran
            accepted.close()

    async def _run(self, accepted: socket.socket) -> None:
        try:
            await self._connect(accepted)
        # the client disconnected, does not use TLS, or sent nothing in time
        except (OSError, ssl.SSLError):
            accepted.close()

    async def _connect_protocol(self, accepted: socket.socket) -> None:
        assert self._make is not None  # noqa: S101
        await self._loop.connect_accepted_socket(
            self._make,
            accepted,
            ssl=self._tls,
            ssl_handshake_timeout=self._handshake_s if self._tls else None,
        )

    def _is_guaranteed(self) -> bool:
        """Return whether one more connection is allowed although no descriptors are left."""
        return len(self._connections) + len(self._handshakes) < self._descriptors.guaranteed

    def _free_descriptors(self, listening: socket.socket, accepted: socket.socket) -> bool:
        """Close idle connections for `accepted`, and pause until their descriptors are free.

        Returns whether to continue to accept immediately.
        """
        if self._close_idle():
            self._pause(listening)
            self._parked[listening] = accepted
            self._loop.call_later(_EVICTION_S, self._start_parked, listening, _EVICTION_CHECKS)
            return False
        if self._is_guaranteed():
            self._start_connection(accepted)
        else:
            self._refuse(accepted)
        return True

    def _start_parked(self, listening: socket.socket, checks: int) -> None:
        """Start the parked connection once its number is below the ceiling; resume accepting."""
        accepted = self._parked.pop(listening, None)
        if accepted is None:
            return
        with contextlib.suppress(OSError):
            lower = accepted.dup()
            if lower.fileno() < accepted.fileno():
                accepted, lower = lower, accepted
            lower.close()
        if accepted.fileno() < self._descriptors.ceiling:
            self._start_connection(accepted)
        elif checks:
            self._parked[listening] = accepted
            self._loop.call_later(_EVICTION_S, self._start_parked, listening, checks - 1)
            return
        else:
            self._refuse(accepted)
        self._resume(listening)

    def _close_idle(self) -> int:
        """Close the longest idle connections of the listener with the most idle ones.

        Return their number.
        """
        largest: list[tuple[float, Callable[[], object]]] = []
        for acceptor in _acceptors.get(self._loop, ()):
            idle = acceptor.idle()
            largest = idle if len(idle) > len(largest) else largest
        largest.sort(key=lambda each: each[0])
        chosen = largest[: -(-len(largest) // _EVICTED_SHARE)]
        for _, close in chosen:
            close()
        if chosen:
            self._warn(f"closed {len(chosen)} idle connections")
        return len(chosen)

    def _refuse(self, accepted: socket.socket) -> None:
        self._warn("refused a connection")
        with accepted, contextlib.suppress(OSError):
            accepted.setblocking(False)
            if self._refusal:
                accepted.send(self._refusal)

    def _pause(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.remove_reader(listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _warn(self, event: str) -> None:
        now = self._loop.time()
        if now >= self._warn_at:
            self._warn_at = now + _WARN_EVERY_S
            limit = self._descriptors.limit
            self._log.warning(
                "%s %s: few of the %d file descriptors (ulimit -n) are free",
                self._name,
                event,
                limit,
            )


def unread(transport: asyncio.Transport) -> int:
    """Return how many written bytes the client's machine has not acknowledged.

    They are in the transport's buffer and in the kernel's, which may hold megabytes.
    """
    waiting, sock = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError, ValueError):  # the socket is closed
            waiting += int.from_bytes(
                fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder
            )
    return waiting


async def delivered(left: Callable[[], int]) -> None:
    """Return when `left()`, the number of unread bytes, is 0 or stalls for STALL_TIMEOUT_S."""
    before, until = left(), asyncio.get_running_loop().time() + STALL_TIMEOUT_S
    while before:
        await asyncio.sleep(PERIOD_S)
        now, rest = asyncio.get_running_loop().time(), left()
        if rest != before:
            until = now + STALL_TIMEOUT_S
        elif now >= until:
            return
        before = rest
