from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from tritonpy.ipc import Frame, Kind
from tritonpy.ipc.questions import Questions
from tritonpy.ipc.waiter import Waiter
from tritonpy.ipc.windows import MAX_ANSWERS, MAX_BYTES, Windows

from .far_end import PATIENCE_S, Server, until


class Bench:
    """The windows of a worker, and the server that grants them room."""

    def __init__(self) -> None:
        self.server = Server()
        self.windows = Windows(self.server.channel, Questions(self.server.channel))

    def send(self, request: int, answers: int, nbytes: int = 0) -> None:
        self.windows.begin(request)
        for _ in range(answers):
            self.windows.sent(request, nbytes)

    def question(self) -> Frame:
        frame = self.server.next()
        assert (frame.kind, frame.extras["verb"]) == (Kind.ASK, "room")
        return frame

    def grant(self, question: Frame) -> None:
        self.server.send(Kind.REPLY, question.words, extras={"value": None})

    def nothing_asked(self) -> bool:
        self.server.socket.setblocking(False)
        try:
            self.server.socket.recv(1)
        except BlockingIOError:
            return True
        return False


class Sending:
    """A thread that waits for room."""

    def __init__(self, wait: Callable[[int], bool], request: int) -> None:
        self.told: list[bool] = []
        self.thread = Thread(target=lambda: self.told.append(wait(request)))
        self.thread.start()

    def end(self) -> list[bool]:
        self.thread.join(PATIENCE_S)
        return self.told


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.server.close()


def test_a_short_stream_says_nothing_and_never_waits(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS // 2 - 1)
    assert not bench.windows.full(1)
    bench.windows.end(1)
    assert bench.nothing_asked()
    assert not bench.windows


def test_room_is_asked_for_once_when_half_of_it_is_used_up(bench: Bench) -> None:
    bench.send(5, MAX_ANSWERS - 1)
    assert bench.question().extras["arguments"] == {"request": 5}
    assert bench.nothing_asked()
    assert not bench.windows.full(5)
    bench.windows.sent(5, 0)
    assert bench.windows.full(5)


def test_what_was_sent_when_it_was_asked_for_is_given_back(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    bench.grant(bench.question())
    bench.server.channel.wait(Waiter(), lambda: not bench.windows.full(1))
    bench.send(1, MAX_ANSWERS // 2 - 1)
    assert not bench.windows.full(1)
    bench.send(1, 1)
    assert bench.windows.full(1)


def test_bytes_use_it_up_as_answers_do(bench: Bench) -> None:
    bench.send(1, 1, MAX_BYTES - 1)
    assert not bench.windows.full(1)
    bench.send(1, 1, 1)
    assert bench.windows.full(1)
    assert not bench.windows.full(2)


def test_who_sends_waits_until_the_server_has_room(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    question = bench.question()
    sending = Sending(bench.windows.wait, 1)
    until(bench.server.channel.has_leader)  # who waits reads the socket
    assert sending.told == []
    bench.grant(question)
    assert sending.end() == [True]


def test_a_window_that_a_grant_leaves_full_is_asked_for_again(bench: Bench) -> None:
    bench.send(1, 1, MAX_BYTES // 2)
    question = bench.question()
    bench.send(1, 1, 100 * MAX_BYTES)
    sending = Sending(bench.windows.wait, 1)
    bench.grant(question)
    bench.grant(bench.question())
    assert sending.end() == [True]


def test_threads_that_wait_for_streams_of_their_own_go_on_one_by_one(bench: Bench) -> None:
    questions = {}
    for request in range(8):
        bench.send(request, MAX_ANSWERS)
        questions[request] = bench.question()
    threads = {request: Sending(bench.windows.wait, request) for request in range(8)}
    until(bench.server.channel.has_leader)
    for request in (3, 0, 7, 5, 1, 2, 6, 4):
        bench.grant(questions[request])
        assert threads.pop(request).end() == [True]
        assert [each.told for each in threads.values()] == [[]] * len(threads)


def test_threads_that_wait_for_one_stream_all_go_on(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    question = bench.question()
    threads = [Sending(bench.windows.wait, 1) for _ in range(8)]
    until(bench.server.channel.has_leader)
    bench.grant(question)
    assert [each.end() for each in threads] == [[True]] * 8


def test_a_request_that_ends_frees_who_waits_for_it(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    reading = Event()
    reader = Thread(target=lambda: bench.server.channel.wait(Waiter(), reading.is_set))
    reader.start()
    until(bench.server.channel.has_leader)
    threads = [Sending(bench.windows.wait, 1) for _ in range(3)]
    bench.windows.end(1)
    assert [each.end() for each in threads] == [[False]] * 3
    reading.set()
    bench.grant(bench.question())
    reader.join(PATIENCE_S)
    assert not bench.windows


def test_a_late_grant_harms_nobody(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    question = bench.question()
    bench.windows.end(1)
    bench.windows.sent(1, 0)
    bench.grant(question)
    bench.server.channel.drain()
    assert not bench.windows


def test_who_asks_to_be_called_is_called_once(bench: Bench) -> None:
    called: list[str] = []
    bench.windows.when_ready(1, lambda: called.append("unknown"))
    bench.send(1, MAX_ANSWERS)
    bench.windows.when_ready(1, lambda: called.append("full"))
    assert called == ["unknown"]
    bench.grant(bench.question())
    bench.server.channel.wait(Waiter(), lambda: len(called) > 1)
    bench.windows.end(1)
    assert called == ["unknown", "full"]


def test_who_waits_and_reads_for_all_looks_up_when_its_request_ends(bench: Bench) -> None:
    bench.send(1, MAX_ANSWERS)
    bench.question()
    sending = Sending(bench.windows.wait, 1)
    until(bench.server.channel.has_leader)
    until(lambda: bench.windows._windows[1].waiting)
    bench.windows.end(1)
    bench.grant(bench.question())
    assert sending.end() == [False]
