from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tritonpy.ipc import Kind
from tritonpy.ipc.channel import ChannelClosed
from tritonpy.ipc.waiter import Waiter

from .exchange import tensor
from .far_end import NEWS, OTHER, PATIENCE_S, Lost, Server, until


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


class Waiting:
    """A thread that waits for a number."""

    def __init__(self, server: Server, number: int) -> None:
        self.done = Event()
        self.waiter = Waiter()
        self._wait = lambda: server.channel.wait(self.waiter, lambda: number in server.heard)
        self._thread = Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        assert self.done.wait(PATIENCE_S)
        self._thread.join()

    def _run(self) -> None:
        self._wait()
        self.done.set()


def test_who_waits_reads_and_hands_each_frame_to_its_handler(server: Server) -> None:
    other: list[int] = []
    server.channel.on(OTHER, lambda frame: other.append(frame.words[0]))
    for number in (1, 2):
        server.send(OTHER, (number,))
        server.send(NEWS, (number,))
    server.channel.wait(Waiter(), lambda: 2 in server.heard)
    assert (server.heard, other) == ([1, 2], [1, 2])
    assert not server.channel.has_leader()


def test_what_is_there_already_is_not_waited_for(server: Server) -> None:
    server.channel.wait(Waiter(), lambda: True)


def test_one_thread_reads_for_all_and_another_takes_over(server: Server) -> None:
    first = Waiting(server, 1)
    until(server.channel.has_leader)
    second = Waiting(server, 2)
    until(server.channel.has_followers)
    server.send(NEWS, (1,))
    first.join()
    until(lambda: server.channel.has_leader() and not server.channel.has_followers())  # the second reads now
    server.send(NEWS, (2,))
    second.join()


def test_a_follower_is_woken_by_who_read_its_frame(server: Server) -> None:
    leader = Waiting(server, 9)
    until(server.channel.has_leader)
    follower = Waiting(server, 1)
    until(server.channel.has_followers)
    server.channel.on(NEWS, lambda frame: (server.heard.append(frame.words[0]), follower.waiter.wake()))
    server.send(NEWS, (1,))
    follower.join()
    assert server.channel.has_leader()
    server.send(NEWS, (9,))
    leader.join()


def test_a_substitute_is_woken_when_nobody_reads_and_it_is_needed(server: Server) -> None:
    needed: list[bool] = []
    substitute = Waiter()
    server.channel.set_substitute(substitute, needed.__len__)
    woken = Event()
    thread = Thread(target=lambda: (substitute.sleep(), woken.set()))
    thread.start()
    server.channel.wait(Waiter(), lambda: True)
    assert not woken.is_set()
    needed.append(True)
    server.channel.wait(Waiter(), lambda: True)
    assert woken.wait(PATIENCE_S)
    thread.join()


def test_what_has_arrived_can_be_handled_without_waiting(server: Server) -> None:
    server.channel.drain()
    server.send(NEWS, (1,))
    server.send(NEWS, (2,))
    server.channel.drain()
    assert server.heard == [1, 2]


def test_large_tensors_cross_and_their_memory_comes_back(server: Server) -> None:
    rows: list[Any] = []
    server.channel.on(OTHER, lambda frame: rows.extend(server.channel.rows(frame, 0, lambda *each: each)[0]))
    large = tensor("FP32", (1 << 16,), bytes(range(1, 61)), {"FP32": np.float32}, name="T")
    server.send(OTHER, rows=[[large]])
    server.channel.wait(Waiter(), rows.__len__)
    assert rows[0][0][3].tobytes() == large.data.tobytes()
    rows.clear()
    gc.collect()
    server.channel.send_returns()
    server.socket.setblocking(False)
    assert server.socket.recv(1 << 16)  # the piece of memory
    server.channel.send_returns()
    with pytest.raises(BlockingIOError):
        server.socket.recv(1)


def test_frames_of_many_threads_do_not_mix(server: Server) -> None:
    threads = [
        Thread(target=lambda number=number: [server.channel.send(NEWS, (number, each)) for each in range(200)])
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    frames = [server.next().words for _ in range(800)]
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [each for sender, each in frames if sender == number] == list(range(200))


class _Parting:
    """Says goodbye to the server when it is collected, wherever that happens."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name, self.datatype, self.shape = "T", "FP32", (1,)

    @property
    def data(self) -> Any:
        _Goodbye(self._server)  # collected in the middle of the frame
        return np.zeros(1, np.float32)


class _Goodbye:
    def __init__(self, server: Server) -> None:
        self._server = server

    def __del__(self) -> None:
        self._server.channel.send(OTHER, (1,))


def test_a_destructor_may_send_in_the_middle_of_a_frame(server: Server) -> None:
    server.channel.send(NEWS, (5,), rows=[[_Parting(server)]])
    assert server.next().kind == NEWS
    assert server.next().kind == OTHER


def test_a_server_that_is_gone_or_talks_nonsense_is_lost(server: Server) -> None:
    server.send(Kind.STOPPED)
    with pytest.raises(Lost, match=f"a frame of kind {Kind.STOPPED} came"):
        server.channel.drain()
    server.socket.sendall(b"\xff" * 64)
    with pytest.raises(Lost, match="impossible length"):
        server.channel.drain()


def test_the_end_of_the_server_is_noticed_by_who_reads_and_by_who_writes() -> None:
    server = Server()
    server.socket.close()
    with pytest.raises(Lost):
        server.channel.wait(Waiter(), lambda: False)
    with pytest.raises(Lost):
        server.channel.send(NEWS, (1,))
    server.close()


def test_a_process_that_was_forked_has_no_way_to_the_server(server: Server) -> None:
    server.channel.close()
    with pytest.raises(ChannelClosed):
        server.channel.send(NEWS, (1,))
