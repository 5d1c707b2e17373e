from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tritonpy_ipc import Kind
from tritonpy_ipc.channel import ChannelClosed
from tritonpy_ipc.waiter import Waiter

from .exchange import tensor
from .remote_end import ANOTHER, ONE, WAIT_S, Lost, Server, until


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


class WaitingThread:
    """A thread that waits for a number."""

    def __init__(self, server: Server, number: int) -> None:
        self.done = Event()
        self.waiter = Waiter()
        self._wait = lambda: server.channel.wait(self.waiter, lambda: number in server.received)
        self._thread = Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        assert self.done.wait(WAIT_S)
        self._thread.join()

    def _run(self) -> None:
        self._wait()
        self.done.set()


def test_a_waiting_thread_reads_and_passes_each_frame_to_its_handler(server: Server) -> None:
    other: list[int] = []
    server.channel.on(ANOTHER, lambda frame: other.append(frame.words[0]))
    for number in (1, 2):
        server.send(ANOTHER, (number,))
        server.send(ONE, (number,))
    server.channel.wait(Waiter(), lambda: 2 in server.received)
    assert (server.received, other) == ([1, 2], [1, 2])
    assert not server.channel.has_leader()


def test_wait_returns_immediately_if_the_condition_is_true(server: Server) -> None:
    server.channel.wait(Waiter(), lambda: True)


def test_one_thread_reads_for_all_and_another_takes_over(server: Server) -> None:
    first = WaitingThread(server, 1)
    until(server.channel.has_leader)
    second = WaitingThread(server, 2)
    until(server.channel.has_followers)
    server.send(ONE, (1,))
    first.join()
    # The second thread reads now.
    until(lambda: server.channel.has_leader() and not server.channel.has_followers())
    server.send(ONE, (2,))
    second.join()


def test_a_follower_is_woken_by_the_reader_of_its_frame(server: Server) -> None:
    leader = WaitingThread(server, 9)
    until(server.channel.has_leader)
    follower = WaitingThread(server, 1)
    until(server.channel.has_followers)
    server.channel.on(
        ONE, lambda frame: (server.received.append(frame.words[0]), follower.waiter.wake())
    )
    server.send(ONE, (1,))
    follower.join()
    assert server.channel.has_leader()
    server.send(ONE, (9,))
    leader.join()


def test_a_standby_is_woken_when_no_thread_reads_and_it_is_needed(server: Server) -> None:
    needed: list[bool] = []
    substitute = Waiter()
    server.channel.set_standby(substitute, needed.__len__)
    woken = Event()
    thread = Thread(target=lambda: (substitute.sleep(), woken.set()))
    thread.start()
    server.channel.wait(Waiter(), lambda: True)
    assert not woken.is_set()
    needed.append(True)
    server.channel.wait(Waiter(), lambda: True)
    assert woken.wait(WAIT_S)
    thread.join()


def test_arrived_frames_can_be_handled_without_waiting(server: Server) -> None:
    server.channel.drain()
    server.send(ONE, (1,))
    server.send(ONE, (2,))
    server.channel.drain()
    assert server.received == [1, 2]


def test_large_tensors_arrive_and_their_memory_is_returned(server: Server) -> None:
    rows: list[Any] = []
    server.channel.on(
        ANOTHER, lambda frame: rows.extend(server.channel.rows(frame, 0, lambda *each: each)[0])
    )
    large = tensor("FP32", (1 << 16,), bytes(range(1, 61)), {"FP32": np.float32}, name="T")
    server.send(ANOTHER, rows=[[large]])
    server.channel.wait(Waiter(), rows.__len__)
    assert rows[0][0][3].tobytes() == large.data.tobytes()
    rows.clear()
    gc.collect()
    server.channel.send_returns()
    server.socket.setblocking(False)
    assert server.socket.recv(1 << 16)  # a shared segment
    server.channel.send_returns()
    with pytest.raises(BlockingIOError):
        server.socket.recv(1)


def test_frames_of_many_threads_do_not_mix(server: Server) -> None:
    threads = [
        Thread(
            target=lambda number=number: [
                server.channel.send(ONE, (number, each)) for each in range(200)
            ]
        )
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    frames = [server.next().words for _ in range(800)]
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [each for sender, each in frames if sender == number] == list(range(200))


class _SendsOnDeletion:
    """Sends a frame when it is deleted, wherever that happens."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name, self.datatype, self.shape = "T", "FP32", (1,)

    @property
    def data(self) -> Any:
        _Goodbye(self._server)  # deleted while the frame is being sent
        return np.zeros(1, np.float32)


class _Goodbye:
    def __init__(self, server: Server) -> None:
        self._server = server

    def __del__(self) -> None:
        self._server.channel.send(ANOTHER, (1,))


def test_a_destructor_may_send_while_its_thread_sends_a_frame(server: Server) -> None:
    server.channel.send(ONE, (5,), rows=[[_SendsOnDeletion(server)]])
    assert server.next().kind == ONE
    assert server.next().kind == ANOTHER


def test_a_server_that_is_gone_or_breaks_the_protocol_is_lost(server: Server) -> None:
    server.send(Kind.STOPPED)
    with pytest.raises(Lost, match=f"unexpected frame of kind {Kind.STOPPED}"):
        server.channel.drain()
    server.socket.sendall(b"\xff" * 64)
    with pytest.raises(Lost, match="invalid length"):
        server.channel.drain()


def test_readers_and_writers_notice_the_end_of_the_server() -> None:
    server = Server()
    server.socket.close()
    with pytest.raises(Lost):
        server.channel.wait(Waiter(), lambda: False)
    with pytest.raises(Lost):
        server.channel.send(ONE, (1,))
    server.close()


def test_the_channel_is_closed_in_a_forked_process(server: Server) -> None:
    server.channel.close()
    with pytest.raises(ChannelClosed):
        server.channel.send(ONE, (1,))
