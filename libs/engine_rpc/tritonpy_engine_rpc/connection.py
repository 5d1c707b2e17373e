"""Connection to a worker or frontend process on the event loop."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tritonpy import DTYPES, Tensor
from tritonpy_ipc import Endpoint, Frame, ProtocolError
from tritonpy_ipc.blocks import Block
from tritonpy_ipc.descriptors import ANCILLARY_SIZE, CLOSE_ON_EXEC, close_all, received_descriptors

log = logging.getLogger("tritonpy.worker")

_CHUNK = 1 << 16


class Connection:
    """Sends and receives frames; all methods run on the event loop's thread.

    `received(frame)` is called for each frame and takes the descriptors that it needs.
    `lost(reason)` is called once when the other end is gone (empty reason) or breaks the protocol.
    Writes never block: data that the socket does not accept is queued.
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
        self._endpoint = Endpoint(DTYPES, self._segment_returned)
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._closed = False
        self._buffer = memoryview(bytearray(_CHUNK))
        loop.add_reader(connection, self._readable)

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

        Raises `OSError` if shared memory cannot be allocated.
        """
        if self._closed:
            close_all(descriptors)
            return
        data, fresh = self._endpoint.compose(kind, words, rows, requested, extras, descriptors)
        self._write(data, fresh)

    @property
    def unsent(self) -> int:
        """Number of frames queued until the socket accepts them."""
        return len(self._unsent)

    def tensors(
        self,
        frame: Frame,
        at: int,
        make_row: Callable[[Block, int], Sequence[Tensor]] | None = None,
    ) -> list[Sequence[Tensor]]:
        """Return the rows of tensors that `frame.words[at:]` describe; see `ipc.tensors.unpack`."""
        return self._endpoint.rows(frame, at, Tensor, make_row)[0]

    def tensors_and_outputs(
        self, frame: Frame, at: int, make_row: Callable[[Block, int], Any] | None = None
    ) -> tuple[list[Any], list[tuple[str, ...] | None]]:
        """Return the rows of tensors and the outputs that each row requests."""
        return self._endpoint.rows(frame, at, Tensor, make_row)

    def wait(self, done: Callable[[], object]) -> None:
        """Block the event loop and handle frames until `done()` is true or the other end is gone.

        Must not be called from `received`.
        """
        while not done() and not self._closed:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            events = poll.poll()[0][1]
            if events & select.POLLOUT:
                self._flush()
            if events & ~select.POLLOUT:
                self._readable()

    def close(self) -> None:
        """Close the socket without calling `lost`; received data stays valid."""
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
            size, control, _, _ = self._socket.recvmsg_into(
                (self._buffer,), ANCILLARY_SIZE, CLOSE_ON_EXEC
            )
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the process was killed while frames of ours were unread
            self._end("")
            return
        if not size:
            self._end("")
            return
        # A copy, because views of it must stay valid; mostly small.
        data = bytes(self._buffer[:size])
        try:
            for frame in self._endpoint.feed(
                data, received_descriptors(control) if control else ()
            ):
                self._received(frame)
                if frame.descriptors:
                    raise ProtocolError(f"a frame of kind {frame.kind} has unexpected descriptors")  # noqa: TRY301
                if self._closed:
                    return
        except ProtocolError as error:
            self._end(f"it broke the worker protocol: {error}")
        except Exception as error:
            # The frame is invalid or this is a bug. Later frames may depend on it.
            log.exception("failed to handle a frame of a worker")
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
                sent = (
                    socket.send_fds(self._socket, [data], descriptors)
                    if descriptors
                    else self._socket.send(data)
                )
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._socket, self._writable)
                return
            except (BrokenPipeError, ConnectionResetError):
                return  # the reader notices the end, after the frames that were sent before it
            except OSError as error:
                self._loop.call_soon(self._end, f"cannot send to it: {error}")
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

    def _segment_returned(self) -> None:
        # Called from any thread, where the last view of a segment is freed.
        if not self._returning and not self._closed:
            self._returning = True
            with suppress(RuntimeError):  # the loop and the worker are closed
                self._loop.call_soon_threadsafe(self._send_returns)

    def _send_returns(self) -> None:
        self._returning = False
        if not self._closed:
            data = self._endpoint.compose_returns()
            if data:
                self._write(data, [])
