"""Accepts connections for every kind of listener and keeps file descriptors in reserve for what else the process opens."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import socket
import ssl
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

_ACCEPTS_AT_ONCE = 64  # connections in one event-loop iteration, where they come in a burst
_BURST_S = (
    0.0001  # connections within this time are a burst; otherwise asking for a second one only costs a system call
)
_RETRY_S = 0.1  # after accept() failed for lack of resources
_ROOM_S = 0.002  # until idle connections that were closed have given up their descriptors
_ROOM_LOOKS = 50
_WARN_EVERY_S = 10.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RESERVED_SHARE = 4  # one in so many descriptors is kept in reserve
_SMALLEST_RESERVE = 16
_LARGEST_RESERVE = 1024
_GUARANTEED = 8  # connections that each listener may have when no other descriptors are left
_CLOSED_AT_ONCE = 16  # one in so many idle connections is closed when descriptors run out
_acceptors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Acceptor]] = weakref.WeakKeyDictionary()


class Evictable(ABC):
    """A connection that may be closed while it is idle, to make room for another one."""

    __slots__ = ()

    @abstractmethod
    def idle_since(self) -> float | None:
        """Return when it became idle, on the event loop's clock; None while the server owes it an answer.

        A connection without a complete request is idle.
        """

    @abstractmethod
    def evict(self) -> None:
        """Close it."""


class Descriptors:
    """The descriptors that connections may use: all below `limit` but the `reserve`.

    The kernel hands out the lowest free number. So a number at or above `ceiling` means that at least as many descriptors are open,
    and as long as connections with such numbers are closed, the numbers above stay free for models, workers and files.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        reserve = min(max(limit // _RESERVED_SHARE, _SMALLEST_RESERVE), _LARGEST_RESERVE)
        self.ceiling = limit - reserve
        self.guaranteed = max(1, min(_GUARANTEED, reserve // _GUARANTEED))

    @classmethod
    def of_process(cls) -> Descriptors:
        """Return those of this process."""
        try:
            import resource
        except ImportError:  # no such limit on this platform
            return cls(2**31)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return cls(2**31 if limit == resource.RLIM_INFINITY else limit)


class Acceptor:
    """Accepts from listening sockets on the running event loop. `make` returns the protocol of a connection.

    With `connect`, accepted sockets go to that coroutine function instead; it may be cancelled while it runs.

    When descriptors run low, the longest idle connections of the listener that has most of them are closed. If none is idle,
    new connections get `refusal` and are closed, except for a few that each listener is guaranteed.
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
        self._is_evictable_at_first = tls is not None or connect is not None
        self._connections = connections  # the open ones; those that are `Evictable` may be closed
        self._log = log
        self._tls = tls
        self._handshake_s = handshake_s
        self._refusal = b"" if tls else refusal
        self._descriptors = descriptors or Descriptors.of_process()
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._beginning: dict[asyncio.Task[None], float] = {}  # connections in their handshake, and since when
        self._parked: dict[
            socket.socket, socket.socket
        ] = {}  # accepted connections that wait for a descriptor, by listening socket
        self._accepted_at = 0.0
        self._warn_at = 0.0
        _acceptors.setdefault(self._loop, []).append(self)

    def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Accept from `sockets`, which are non-blocking and listen. They are closed by `close`."""
        for listening in sockets:
            self._sockets.append(listening)
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accept what the kernel has completed so far, so that it is not reset, and stop listening."""
        if self in _acceptors.get(self._loop, ()):
            _acceptors[self._loop].remove(self)
        sockets, self._sockets = self._sockets, []
        self._descriptors = Descriptors(2**31)  # the last ones are accepted in any case
        for listening in sockets:
            self._loop.remove_reader(listening)
            while self._accept(listening):
                pass
            listening.close()
        for accepted in self._parked.values():
            self._begin(accepted)
        self._parked.clear()

    async def closed(self) -> None:
        """Return when no connection is in its handshake any more; call it after `close`."""
        for task in list(self._beginning) if self._is_evictable_at_first else ():
            task.cancel()
        if self._beginning:
            await asyncio.wait(set(self._beginning))

    def idle(self) -> list[tuple[float, Callable[[], object]]]:
        """Return when each idle connection became idle, and what closes it."""
        found: list[tuple[float, Callable[[], object]]] = [
            (since, task.cancel) for task, since in self._beginning.items() if self._is_evictable_at_first
        ]
        for connection in self._connections:
            if isinstance(connection, Evictable):
                since = connection.idle_since()
                if since is not None:
                    found.append((since, connection.evict))
        return found

    def _accept(self, listening: socket.socket) -> bool:
        """Accept what waits, up to a bound; return whether more may wait."""
        now = self._loop.time()
        count, self._accepted_at = _ACCEPTS_AT_ONCE if now - self._accepted_at < _BURST_S else 1, now
        for _ in range(count):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._close_idle()  # the kernel would report the same connection again at once: it waits for a moment
                    self._pause(listening)
                    self._loop.call_later(_RETRY_S, self._go_on, listening)
                    return False
                raise
            if accepted.fileno() >= self._descriptors.ceiling:
                return self._make_room(listening, accepted)
            self._begin(accepted)
        return True

    def adopt(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere, within the limits of this listener."""
        if accepted.fileno() >= self._descriptors.ceiling and not self._is_guaranteed():
            self._refuse(accepted)
        else:
            self._begin(accepted)

    def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        task = self._loop.create_task(self._run(accepted))
        self._beginning[task] = self._loop.time()
        task.add_done_callback(functools.partial(self._begun, accepted))

    def _begun(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        del self._beginning[task]
        if task.cancelled():  # perhaps before it ran
            accepted.close()

    async def _run(self, accepted: socket.socket) -> None:
        try:
            await self._connect(accepted)
        except (OSError, ssl.SSLError):  # the client left, speaks no TLS, or sent nothing in time
            accepted.close()

    async def _connect_protocol(self, accepted: socket.socket) -> None:
        assert self._make is not None  # noqa: S101
        await self._loop.connect_accepted_socket(
            self._make, accepted, ssl=self._tls, ssl_handshake_timeout=self._handshake_s if self._tls else None
        )

    def _is_guaranteed(self) -> bool:
        """Return whether one more connection is allowed even if no descriptors are left."""
        return len(self._connections) + len(self._beginning) < self._descriptors.guaranteed

    def _make_room(self, listening: socket.socket, accepted: socket.socket) -> bool:
        """Close idle connections for `accepted`, and accept nothing until their descriptors are free; return whether to accept on at once."""
        if self._close_idle():
            self._pause(listening)
            self._parked[listening] = accepted
            self._loop.call_later(_ROOM_S, self._take_room, listening, _ROOM_LOOKS)
            return False
        if self._is_guaranteed():
            self._begin(accepted)
        else:
            self._refuse(accepted)
        return True

    def _take_room(self, listening: socket.socket, looks: int) -> None:
        """Begin the parked connection under a number below the ceiling, and accept on."""
        accepted = self._parked.pop(listening, None)
        if accepted is None:
            return
        with contextlib.suppress(OSError):
            lower = accepted.dup()
            if lower.fileno() < accepted.fileno():
                accepted, lower = lower, accepted
            lower.close()
        if accepted.fileno() < self._descriptors.ceiling:
            self._begin(accepted)
        elif looks:
            self._parked[listening] = accepted
            self._loop.call_later(_ROOM_S, self._take_room, listening, looks - 1)
            return
        else:
            self._refuse(accepted)
        self._go_on(listening)

    def _close_idle(self) -> int:
        """Close the longest idle connections of the listener that has most of them; return how many."""
        most: list[tuple[float, Callable[[], object]]] = []
        for acceptor in _acceptors.get(self._loop, ()):
            idle = acceptor.idle()
            most = idle if len(idle) > len(most) else most
        most.sort(key=lambda each: each[0])
        chosen = most[: -(-len(most) // _CLOSED_AT_ONCE)]
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

    def _go_on(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _warn(self, what: str) -> None:
        now = self._loop.time()
        if now >= self._warn_at:
            self._warn_at = now + _WARN_EVERY_S
            limit = self._descriptors.limit
            self._log.warning("%s %s: few of the %d file descriptors (ulimit -n) are left", self._name, what, limit)
