"""The engine's side of requests: who waits for whom, and what is left when a process goes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from core.tests.frontend_processes.linked import FrontendEnd, linked
from tritonpy.api.engine_in_front import EngineInFront
from tritonpy.errors import Internal, QueueFull
from tritonpy.frontend_processes import kinds
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, InferResponse, Room, StreamSink, Tensor

PATIENCE_S = 20


class Held(EngineInFront):
    """Keeps what it is given, and answers when the test says so."""

    def __init__(self, engine: ToyEngine) -> None:
        super().__init__(engine)
        self.given: list[InferRequest] = []
        self.came = threading.Condition()

    def infer(self, request: InferRequest) -> None:
        with self.came:
            self.given.append(request)
            self.came.notify_all()

    def wait(self, count: int = 1) -> InferRequest:
        with self.came:
            assert self.came.wait_for(lambda: len(self.given) >= count, PATIENCE_S)
            return self.given[-1]


def until(condition: Callable[[], object]) -> None:
    """Wait for what has no event of its own."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 200):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("it never was so")


def answer_of(request: InferRequest, number: int, final: bool = False) -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.array([number]))], request.model_name, 1, request.id, final=final)


class Tag:
    def __init__(self, room: Room) -> None:
        self.room = room


def stream(end: FrontendEnd, room: Room, delivered: list[int]) -> InferRequest:
    """A request to a decoupled model, of whose answers nothing leaves but by `room.take()`."""
    sink = StreamSink(end.thread.loop, lambda _request, response: delivered.append(int(response.outputs[0].numpy()[0])))
    return InferRequest("repeat", {}, sink, accepts_decoupled=True, tag=Tag(room))


def produce(request: InferRequest, most: int = 5_000) -> int:
    """Answer until the stream is full; return how many there were."""
    for number in range(most):
        if not request.sink.ready(request):
            return number
        request.sink.put(request, answer_of(request, number))
    return most


def test_a_producer_waits_while_a_frontend_has_no_room_and_goes_on_when_answers_leave() -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (_, end):
        room, delivered = Room(4, 1 << 20), []
        end.engine.infer(stream(end, room, delivered))
        request = held.wait()
        made = produce(request)
        assert 4 <= made < 5_000
        until(lambda: len(delivered) == made)
        assert not request.sink.ready(request)
        again = threading.Event()
        request.sink.when_ready(request, again.set)
        assert not again.is_set()
        for _ in range(made):
            end.thread.do(room.take)
        assert again.wait(PATIENCE_S), "it was never called"
        until(lambda: request.sink.ready(request))
        assert delivered == list(range(made))


def test_a_cancellation_calls_a_producer_that_waits() -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (_, end):
        sent = stream(end, Room(4, 1 << 20), [])
        end.engine.infer(sent)
        request = held.wait()
        produce(request)
        called = threading.Event()
        request.sink.when_ready(request, called.set)
        sent.cancel()
        assert called.wait(PATIENCE_S)
        assert request.cancelled


def test_when_a_process_goes_its_requests_are_cancelled_and_nobody_waits_for_it() -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (engine, end):
        end.engine.infer(stream(end, Room(4, 1 << 20), []))
        end.engine.infer(InferRequest("identity", {}, Witness().sink))
        held.wait(2)
        streaming, single = held.given
        produce(streaming)
        called = threading.Event()
        streaming.sink.when_ready(streaming, called.set)
        end.thread.do(end.connection.close)
        assert called.wait(PATIENCE_S)
        until(lambda: streaming.cancelled and single.cancelled)
        for request in (streaming, single):
            request.sink.put(request, answer_of(request, 1, final=True))
        engine.thread.do(lambda: None)
        assert engine.lost == [""]


def test_answers_of_one_turn_are_one_frame() -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (engine, end):
        witness = Witness()
        requests = [InferRequest("identity", {}, witness.sink, id=str(number)) for number in range(40)]
        end.thread.do(lambda: [end.engine.infer(request) for request in requests])
        held.wait(40)
        assert [frame.kind for frame in engine.frames].count(kinds.INFER) == 1
        engine.thread.do(lambda: [one.sink.put(one, answer_of(one, 1, final=True)) for one in held.given])
        assert [answers[0].id for answers in witness.wait(*requests)] == [str(number) for number in range(40)]


def test_alike_requests_of_one_turn_are_handed_over_together_and_refused_one_by_one() -> None:
    class Together(Held):
        def infer_alike(self, requests: Sequence[InferRequest], refused: Callable[..., None]) -> None:
            for request in requests:
                refused(request, QueueFull(f"no room for {int(request.inputs['IN'].data[0])}"))
            sizes.append(len(requests))

    sizes: list[int] = []
    with ToyEngine() as toy, linked(Together(toy)) as (_, end):
        witness = Witness()
        requests = [
            InferRequest("m", {"IN": Tensor.from_numpy("IN", np.array([number]))}, witness.sink, id=f"r{number}")
            for number in range(5)
        ]
        end.engine._single.add(("m", -1))
        end.thread.do(lambda: [end.engine.infer(request) for request in requests])
        refusals = [response for (response,) in witness.wait(*requests)]
    assert sizes == [5]
    assert [(type(each.error), str(each.error), each.refused, each.id) for each in refusals] == [
        (QueueFull, f"no room for {number}", True, f"r{number}") for number in range(5)
    ]


def test_an_answer_that_cannot_be_sent_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (engine, end):
        witness = Witness()
        good, bad = (InferRequest("identity", {}, witness.sink, id=name) for name in ("good", "bad"))
        end.engine.infer(good)
        end.engine.infer(bad)
        held.wait(2)
        send = engine.connection.send

        def fail(kind: int, words: list[int], rows: list[list[Tensor]], *more: object) -> None:
            if any(tensor.nbytes > 1 << 16 for row in rows for tensor in row):
                raise OSError(28, "No space left on device")
            send(kind, words, rows, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(engine.connection, "send", fail)
        large = InferResponse([Tensor.from_numpy("OUT", np.zeros(1 << 16))], "identity", 1, "bad")
        first, second = held.given
        engine.thread.do(
            lambda: (first.sink.put(first, answer_of(first, 1, final=True)), second.sink.put(second, large))
        )
        [[answered], [failed]] = witness.wait(good, bad)
        assert answered.error is None
        assert isinstance(failed.error, Internal)
        assert "no shared memory for the outputs of model 'identity'" in failed.error.message


@pytest.mark.parametrize("version", [2**63 - 1, 2**70])
def test_a_refusal_that_names_a_version_beyond_all_bounds_arrives_and_others_after_it(version: int) -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (engine, end):
        witness = Witness()
        strange, plain = InferRequest("m", {}, witness.sink, version), InferRequest("m", {}, witness.sink)
        for request in (strange, plain):
            end.engine.infer(request)
        held.wait(2)
        refused = [InferResponse.failed(request, Internal("no such version")) for request in held.given]
        engine.thread.do(lambda: [one.sink.put(one, refusal) for one, refusal in zip(held.given, refused, strict=True)])
        assert all(isinstance(answer.error, Internal) for [answer] in witness.wait(strange, plain))


@pytest.mark.parametrize(
    ("kind", "words"), [(kinds.TAKEN, [1, 5]), (kinds.TAKEN, [1]), (kinds.INFER, []), (kinds.INFER, [1, 2]), (99, [])]
)
def test_a_process_that_talks_nonsense_is_given_up(kind: int, words: list[int]) -> None:
    with ToyEngine() as toy, linked(held := Held(toy)) as (engine, end):
        end.engine.infer(InferRequest("identity", {}, Witness().sink))
        request = held.wait()
        end.thread.do(lambda: end.connection.send(kind, words))
        until(lambda: engine.lost)
        assert "it broke the worker protocol" in engine.lost[0]
        assert request.cancelled


def test_unknown_numbers_are_of_requests_that_are_over() -> None:
    with ToyEngine() as toy, linked(toy) as (engine, end):
        for kind, words in ((kinds.CANCEL, [7, 8]), (kinds.TAKEN, [7, 1]), (kinds.NOTES, [7])):
            end.thread.do(lambda kind=kind, words=words: end.connection.send(kind, words, extras={"stamps": []}))
        assert end.engine.is_live()
        assert engine.lost == []
