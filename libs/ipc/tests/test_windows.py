from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from tritonpy_ipc import Frame, Kind
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.waiter import Waiter
from tritonpy_ipc.windows import MAX_BYTES, MAX_RESPONSES, Windows

from .remote_end import WAIT_S, Server, until


class Bench:
    """The windows of a worker, and a server that grants credit."""

    def __init__(self) -> None:
        self.server = Server()
        self.windows = Windows(self.server.channel, RpcClient(self.server.channel))

    def send(self, request: int, answers: int, nbytes: int = 0) -> None:
        self.windows.begin(request)
        for _ in range(answers):
            self.windows.sent(request, nbytes)

    def query(self) -> Frame:
        frame = self.server.next()
        assert (frame.kind, frame.extras["verb"]) == (Kind.QUERY, "credit")
        return frame

    def grant(self, query: Frame) -> None:
        self.server.send(Kind.QUERY_RESULT, query.words, extras={"value": None})

    def no_request(self) -> bool:
        self.server.socket.setblocking(False)
        try:
            self.server.socket.recv(1)
        except BlockingIOError:
            return True
        return False


class SendingThread:
    """A thread that waits for credit."""

    def __init__(self, wait: Callable[[int], bool], request: int) -> None:
        self.results: list[bool] = []
        self.thread = Thread(target=lambda: self.results.append(wait(request)))
        self.thread.start()

    def end(self) -> list[bool]:
        self.thread.join(WAIT_S)
        return self.results


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.server.close()


def test_a_short_stream_needs_no_credit_and_never_waits(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES // 2 - 1)
    assert not bench.windows.full(1)
    bench.windows.end(1)
    assert bench.no_request()
    assert not bench.windows


def test_credit_is_requested_once_when_half_of_the_window_is_used(bench: Bench) -> None:
    bench.send(5, MAX_RESPONSES - 1)
    assert bench.query().extras["arguments"] == {"request": 5}
    assert bench.no_request()
    assert not bench.windows.full(5)
    bench.windows.sent(5, 0)
    assert bench.windows.full(5)


def test_a_grant_covers_the_responses_sent_before_its_request(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    bench.grant(bench.query())
    bench.server.channel.wait(Waiter(), lambda: not bench.windows.full(1))
    bench.send(1, MAX_RESPONSES // 2 - 1)
    assert not bench.windows.full(1)
    bench.send(1, 1)
    assert bench.windows.full(1)


def test_bytes_use_up_the_window_as_responses_do(bench: Bench) -> None:
    bench.send(1, 1, MAX_BYTES - 1)
    assert not bench.windows.full(1)
    bench.send(1, 1, 1)
    assert bench.windows.full(1)
    assert not bench.windows.full(2)


def test_a_sender_waits_until_the_server_grants_credit(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    query = bench.query()
    sending = SendingThread(bench.windows.wait, 1)
    until(bench.server.channel.has_leader)  # the waiting thread reads the socket
    assert sending.results == []
    bench.grant(query)
    assert sending.end() == [True]


def test_a_window_that_is_full_after_a_grant_requests_credit_again(bench: Bench) -> None:
    bench.send(1, 1, MAX_BYTES // 2)
    query = bench.query()
    bench.send(1, 1, 100 * MAX_BYTES)
    sending = SendingThread(bench.windows.wait, 1)
    bench.grant(query)
    bench.grant(bench.query())
    assert sending.end() == [True]


def test_threads_that_wait_for_different_streams_resume_independently(bench: Bench) -> None:
    rpc_client = {}
    for request in range(8):
        bench.send(request, MAX_RESPONSES)
        rpc_client[request] = bench.query()
    threads = {request: SendingThread(bench.windows.wait, request) for request in range(8)}
    until(bench.server.channel.has_leader)
    for request in (3, 0, 7, 5, 1, 2, 6, 4):
        bench.grant(rpc_client[request])
        assert threads.pop(request).end() == [True]
        assert [each.results for each in threads.values()] == [[]] * len(threads)


def test_all_threads_that_wait_for_one_stream_resume(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    query = bench.query()
    threads = [SendingThread(bench.windows.wait, 1) for _ in range(8)]
    until(bench.server.channel.has_leader)
    bench.grant(query)
    assert [each.end() for each in threads] == [[True]] * 8


def test_the_end_of_a_request_resumes_its_waiting_threads(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    reading = Event()
    reader = Thread(target=lambda: bench.server.channel.wait(Waiter(), reading.is_set))
    reader.start()
    until(bench.server.channel.has_leader)
    threads = [SendingThread(bench.windows.wait, 1) for _ in range(3)]
    bench.windows.end(1)
    assert [each.end() for each in threads] == [[False]] * 3
    reading.set()
    bench.grant(bench.query())
    reader.join(WAIT_S)
    assert not bench.windows


def test_a_late_grant_is_ignored(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    query = bench.query()
    bench.windows.end(1)
    bench.windows.sent(1, 0)
    bench.grant(query)
    bench.server.channel.drain()
    assert not bench.windows


def test_a_ready_callback_is_called_once(bench: Bench) -> None:
    called: list[str] = []
    bench.windows.when_ready(1, lambda: called.append("unknown"))
    bench.send(1, MAX_RESPONSES)
    bench.windows.when_ready(1, lambda: called.append("full"))
    assert called == ["unknown"]
    bench.grant(bench.query())
    bench.server.channel.wait(Waiter(), lambda: len(called) > 1)
    bench.windows.end(1)
    assert called == ["unknown", "full"]


def test_a_waiting_leader_resumes_when_its_request_ends(bench: Bench) -> None:
    bench.send(1, MAX_RESPONSES)
    bench.query()
    sending = SendingThread(bench.windows.wait, 1)
    until(bench.server.channel.has_leader)
    until(lambda: bench.windows._windows[1].waiting)
    bench.windows.end(1)
    bench.grant(bench.query())
    assert sending.end() == [False]
