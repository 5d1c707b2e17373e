from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import threading
from contextlib import asynccontextmanager

import numpy as np
import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop, tensor
from plugins.workers.tests.worker_model import check_leaks
from tritonpy_engine_rpc.connection import Connection
from tritonpy_ipc import Endpoint, Kind, ProtocolError
from tritonpy_types import Tensor

KIND = 77
LARGE = np.arange(100_000, dtype=np.int32)


class Ends:
    """The server's end, and a plain blocking socket as the other end."""

    def __init__(self):
        ours, self.socket = socket.socketpair()
        self.endpoint = Endpoint()
        self.received, self.lost = [], []
        self.act = lambda _frame: None
        self.connection = Connection(asyncio.get_running_loop(), ours, self._take, self.lost.append)

    def _take(self, frame):
        self.received.append(frame)
        self.act(frame)

    def send(self, kind, words=(), **more):
        data, descriptors = self.endpoint.compose(kind, words, **more)
        socket.send_fds(self.socket, [data], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def send_plain(self, kind):
        """Send a frame without data."""
        self.socket.send(self.endpoint.compose(kind)[0])

    def read(self):
        """Return the frames that have arrived at the worker."""
        data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 20, 16)
        return self.endpoint.feed(data, descriptors)

    def read_all(self, count):
        """Return `count` frames from a thread that may block."""
        frames = []
        while len(frames) < count:
            frames += self.read()
        return frames


@asynccontextmanager
async def ends():
    async with check_leaks():
        both = Ends()
        try:
            yield both
        finally:
            both.connection.close()
            both.socket.close()
            both.endpoint.close()
            both.received.clear()


@on_loop
async def test_frames_go_both_ways_with_their_tensors():
    async with ends() as both:
        both.connection.send(KIND, [5], [[tensor(LARGE)]], [("OUT",)], {"a": 1})
        (frame,) = both.read()
        (((got,),), requested) = both.endpoint.rows(frame, 1, Tensor)
        assert (frame.kind, frame.words[0], frame.extras["a"], requested) == (
            KIND,
            5,
            1,
            [("OUT",)],
        )
        assert np.array_equal(got.data, LARGE)
        both.send(KIND, [6], rows=[[got]], requested=[("A",)])
        await eventually(lambda: both.received)
        rows, requested = both.connection.tensors_and_outputs(both.received[0], 1)
        assert np.array_equal(rows[0][0].numpy(), LARGE)
        assert requested == [("A",)]


@on_loop
async def test_a_segment_is_returned_when_its_last_view_is_freed_in_any_thread():
    async with ends() as both:
        both.send(KIND, rows=[[tensor(LARGE)]])
        await eventually(lambda: both.received)
        held = both.connection.tensors(both.received.pop(), 0)
        gc.collect()
        both.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            both.read()
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        await eventually(lambda: _readable(both.socket))
        assert both.read() == []  # RETURN frames are not visible
        both.send(KIND, rows=[[tensor(LARGE)]])
        await eventually(lambda: both.received)
        assert not both.lost


def _readable(end):
    try:
        return end.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return b""


@on_loop
async def test_data_for_a_full_socket_is_queued_and_arrives_in_order():
    async with ends() as both:
        words, count = list(range(2000)), 300
        for number in range(count):
            both.connection.send(KIND, [number, *words])
        assert both.connection.unsent > 0
        frames = await asyncio.to_thread(both.read_all, count)
        assert [frame.words[0] for frame in frames] == list(range(count))
        assert all(frame.words[1:] == tuple(words) for frame in frames)
        await eventually(lambda: not both.connection.unsent)


@on_loop
async def test_descriptors_wait_with_their_frame():
    async with ends() as both:
        count = 100
        for number in range(count):
            both.connection.send(KIND, [number, *range(2000)])
        read, write = os.pipe()
        both.connection.send(KIND, descriptors=[read])
        assert both.connection.unsent > 1
        *_, last = await asyncio.to_thread(both.read_all, count + 1)
        (taken,) = last.take_descriptors()
        os.write(write, b"x")
        assert os.read(taken, 1) == b"x"
        os.close(taken)
        os.close(write)


@on_loop
async def test_a_frame_that_is_larger_than_the_socket_brings_its_descriptors_once():
    async with ends() as both:
        read, write = os.pipe()
        both.connection.send(KIND, extras={"text": "x" * 5_000_000}, descriptors=[read])
        assert both.connection.unsent == 1
        frame = (await asyncio.to_thread(both.read_all, 1)).pop()
        assert (len(frame.extras["text"]), len(frame.descriptors), both.lost) == (5_000_000, 1, [])
        del frame
        os.close(write)


@on_loop
async def test_unsent_frames_leave_nothing_behind_at_the_end():
    async with ends() as both:
        read, write = os.pipe()
        for _ in range(100):
            both.connection.send(KIND, range(5000))
        both.connection.send(KIND, descriptors=[read])
        both.connection.send(KIND, rows=[[tensor(LARGE)]])
        both.connection.close()
        both.connection.send(KIND, descriptors=[write])
        for descriptor in (read, write):
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(descriptor)
        assert both.lost == []


@on_loop
async def test_frames_of_a_dead_worker_are_handled_before_its_death():
    async with ends() as both:
        both.send(KIND, [1])
        both.send(KIND, [2])
        both.socket.close()
        both.connection.send(KIND)
        both.connection.send(KIND)
        await eventually(lambda: both.lost)
        assert [frame.words for frame in both.received] == [(1,), (2,)]
        assert both.lost == [""]


@on_loop
async def test_a_worker_that_died_with_frames_unread_is_lost_without_another_reason():
    async with ends() as both:
        both.connection.send(KIND)
        both.socket.close()
        await eventually(lambda: both.lost)
        assert both.lost == [""]


@on_loop
async def test_a_worker_that_cannot_be_written_to_is_lost(monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))

    async with ends() as both:
        with monkeypatch.context() as patch:
            patch.setattr(socket, "send_fds", refuse)
            both.connection.send(KIND, descriptors=[os.open(os.devnull, os.O_RDONLY)])
            both.connection.send(KIND)
            assert both.lost == []  # not while a frame is being sent
            await eventually(lambda: both.lost)
        assert both.lost == [
            f"cannot send to it: [Errno {errno.ETOOMANYREFS}] {os.strerror(errno.ETOOMANYREFS)}"
        ]


@on_loop
async def test_a_worker_is_lost_once_however_many_reasons_there_are(monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))

    async with ends() as both:

        def send_and_fail(_frame):
            both.connection.send(KIND, descriptors=[os.open(os.devnull, os.O_RDONLY)])
            raise ProtocolError("and it makes no sense")

        both.act = send_and_fail
        with monkeypatch.context() as patch:
            patch.setattr(socket, "send_fds", refuse)
            both.send_plain(KIND)
            await eventually(lambda: both.lost)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert both.lost == ["it broke the worker protocol: and it makes no sense"]


@on_loop
async def test_invalid_data_ends_the_connection_after_earlier_frames_are_handled():
    async with ends() as both:
        both.send(KIND, [1])
        await eventually(lambda: both.received)
        both.socket.send(b"\xff" * 100)
        await eventually(lambda: both.lost)
        both.connection.close()
        assert both.lost == ["it broke the worker protocol: a frame announces an invalid length"]
        assert len(both.received) == 1


@on_loop
async def test_a_fault_in_handling_a_frame_ends_the_connection_and_is_logged(caplog):
    async with ends() as both:

        def fail(_frame):
            raise KeyError("verb")

        both.act = fail
        both.send(KIND)
        await eventually(lambda: both.lost)
        assert both.lost == ["it broke the worker protocol: KeyError('verb')"]
    assert "failed to handle a frame of a worker" in caplog.text


@on_loop
async def test_nothing_is_received_after_the_end():
    async with ends() as both:
        both.act = lambda _frame: both.connection.close()
        data = b"".join(both.endpoint.compose(KIND, [number])[0] for number in range(3))
        both.socket.send(data)
        await eventually(lambda: both.received)
        assert len(both.received) == 1
        assert both.lost == []


@on_loop
async def test_unexpected_descriptors_end_the_connection_and_are_closed():
    async with ends() as both:
        both.send(KIND, descriptors=[os.open(os.devnull, os.O_RDONLY)])
        await eventually(lambda: both.lost)
        assert both.lost == [
            f"it broke the worker protocol: a frame of kind {KIND} has unexpected descriptors"
        ]


@on_loop
async def test_received_descriptors_are_not_inherited():
    async with ends() as both:
        taken = []
        both.act = lambda frame: taken.extend(frame.take_descriptors())
        both.send(KIND, descriptors=[os.open(os.devnull, os.O_RDONLY)])
        await eventually(lambda: taken)
        assert not os.get_inheritable(taken[0])
        os.close(taken[0])


@on_loop
async def test_memory_returned_after_the_end_is_ignored():
    async with ends() as both:
        both.send(KIND, rows=[[tensor(LARGE)]])
        await eventually(lambda: both.received)
        held = both.connection.tensors(both.received.pop(), 0)
        both.connection.close()
        assert held[0][0].numpy()[-1] == LARGE[-1]
        del held
        gc.collect()


def test_memory_returned_after_the_loop_is_closed_is_ignored():
    held = []

    async def borrow():
        ours, theirs = socket.socketpair()
        connection = Connection(
            asyncio.get_running_loop(),
            ours,
            lambda frame: held.extend(connection.tensors(frame, 0)),
            print,
        )
        data, descriptors = Endpoint().compose(Kind.RESPONSES, rows=[[tensor(LARGE)]])
        socket.send_fds(theirs, [data], descriptors)
        os.close(descriptors[0])
        await eventually(lambda: held)
        return connection, theirs

    connection, theirs = asyncio.run(borrow())
    held.clear()
    gc.collect()
    assert connection._endpoint.compose_returns(), "it came back"
    connection._socket.close()
    theirs.close()


def test_wait_handles_frames_while_the_loop_is_blocked():
    async def scenario():
        ends = Ends()
        answers = []

        def answer():
            data = b""
            while len(data) < LARGE.nbytes:  # more than the socket buffer: it is sent while waiting
                data += ends.socket.recv(1 << 16)
            ends.send(KIND, [1])
            answers.append(True)

        thread = threading.Thread(target=answer)
        thread.start()
        for _ in range(LARGE.nbytes // 16_384 + 1):
            ends.connection.send(KIND, (), extras={"x": "x" * 16_384})
        ends.connection.wait(ends.received.__len__)
        thread.join()
        assert [frame.words for frame in ends.received] == [(1,)]
        ends.socket.close()
        ends.connection.wait(lambda: False)  # the wait ends when the other end is gone
        assert ends.lost == [""]

    asyncio.run(scenario())
