"""The socket to one worker, or to one frontend process, on the event loop."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tritonpy.ipc import Endpoint, Frame, ProtocolError
from tritonpy.ipc.blocks import Block
from tritonpy.ipc.descriptors import CLOSE_ON_EXEC, ROOM, arrived, close_all
from tritonpy.types import DTYPES, Tensor

log = logging.getLogger("tritonpy.worker")

_CHUNK = 1 << 16


class Connection:
    """Frames in, frames out; everything here runs on the loop's thread.

    `received(frame)` is called for each frame and takes out of it the descriptors that it wants; `lost(reason)` once, when the worker
    is gone (empty reason) or talks nonsense.
    A write that the socket does not take at once waits for it: the loop never does.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: socket.socket,
        received: Callable[[Frame], None],
        lost: Callable[[str], None],
    ) -> None:
        connection.setblocking(False)
        self._loop = loop
        self._socket = connection
        self._received = received
        self._lost = lost
        self._returning = False
        self._endpoint = Endpoint(DTYPES, self._parcel_returned)
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._closed = False
        self._buffer = memoryview(bytearray(_CHUNK))
        loop.add_reader(connection, self._readable)

    def send(
        self,
        kind: int,
        words: Sequence[int] = (),
        rows: Sequence[Sequence[Any]] | None = None,
        wants: Sequence[tuple[str, ...] | None] | None = None,
        extras: Mapping[str, Any] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Send one frame; `descriptors` are closed once they are sent. Raises OSError where shared memory cannot be had."""
        if self._closed:
            close_all(descriptors)
            return
        data, fresh = self._endpoint.compose(kind, words, rows, wants, extras, descriptors)
        self._write(data, fresh)

    @property
    def unsent(self) -> int:
        """How many frames wait for the socket to take them."""
        return len(self._unsent)

    def tensors(
        self, frame: Frame, at: int, place: Callable[[Block, int], Sequence[Tensor]] | None = None
    ) -> list[Sequence[Tensor]]:
        """Return the rows of tensors that the words of `frame` from `at` on describe; `place` is that of `ipc.tensors.unpack`."""
        return self._endpoint.rows(frame, at, Tensor, place)[0]

    def tensors_and_wants(
        self, frame: Frame, at: int, place: Callable[[Block, int], Any] | None = None
    ) -> tuple[list[Any], list[tuple[str, ...] | None]]:
        """Return them with the outputs that each row asks for."""
        return self._endpoint.rows(frame, at, Tensor, place)

    def wait(self, done: Callable[[], object]) -> None:
        """Take what arrives until `done()` is true or the other end is gone; the loop stands still meanwhile. Not for use in `received`."""
        while not done() and not self._closed:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            events = poll.poll()[0][1]
            if events & select.POLLOUT:
                self._flush()
            if events & ~select.POLLOUT:
                self._readable()

    def close(self) -> None:
        """Close the socket; what was received stays valid. `lost` is not called any more."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        for _, descriptors in self._unsent:
            close_all(descriptors)
        self._unsent.clear()
        self._endpoint.close()

    def _readable(self) -> None:
        try:
            size, control, _, _ = self._socket.recvmsg_into((self._buffer,), ROOM, CLOSE_ON_EXEC)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # it was killed with frames of ours unread
            self._end("")
            return
        if not size:
            self._end("")
            return
        data = bytes(self._buffer[:size])  # what is viewed must stay, and mostly it is small
        try:
            for frame in self._endpoint.feed(data, arrived(control) if control else ()):
                self._received(frame)
                if frame.descriptors:
                    raise ProtocolError(f"a frame of kind {frame.kind} came with descriptors that nobody wants")  # noqa: TRY301
                if self._closed:
                    return
        except ProtocolError as error:
            self._end(f"it broke the worker protocol: {error}")
        except Exception as error:  # a frame without sense, or a fault of ours: what it should have done is not done
            log.exception("a frame of a worker could not be handled")
            self._end(f"it broke the worker protocol: {error!r}")

    def _end(self, reason: str) -> None:
        if not self._closed:
            self.close()
            self._lost(reason)

    def _write(self, data: bytes, descriptors: list[int]) -> None:
        self._unsent.append((memoryview(data), descriptors))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._unsent:
            data, descriptors = self._unsent[0]
            try:
                sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._socket, self._writable)
                return
            except (BrokenPipeError, ConnectionResetError):
                return  # the reader finds out, after what the worker said before
            except OSError as error:
                self._loop.call_soon(self._end, f"nothing can be sent to it: {error}")
                return
            close_all(descriptors)
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = (data[sent:], [])

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket)
        if not self._closed:
            self._flush()

    def _parcel_returned(self) -> None:
        # From any thread, wherever the last view on a parcel went.
        if not self._returning and not self._closed:
            self._returning = True
            with suppress(RuntimeError):  # the loop is closed, and the worker with it
                self._loop.call_soon_threadsafe(self._send_returns)

    def _send_returns(self) -> None:
        self._returning = False
        if not self._closed:
            data = self._endpoint.compose_returns()
            if data:
                self._write(data, [])
