"""The engine's side of requests from frontend processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from plugins.frontend_processes.tests.linked import FrontendEnd, linked
from tritonpy.api.router import ForwardingEngine
from tritonpy_frontend_processes import kinds
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import FlowControl, InferRequest, InferResponse, StreamSink, Tensor
from tritonpy_types.errors import Internal, QueueFull

WAIT_S = 20


class HoldingEngine(ForwardingEngine):
    """Holds requests until the test responds."""

    def __init__(self, engine: ToyEngine) -> None:
        super().__init__(engine)
        self.requests: list[InferRequest] = []
        self.changed = threading.Condition()

    def infer(self, request: InferRequest) -> None:
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()

    def wait(self, count: int = 1) -> InferRequest:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, WAIT_S)
            return self.requests[-1]


def until(condition: Callable[[], object]) -> None:
    """Poll a condition without an event."""
    pause = threading.Event()
    for _ in range(WAIT_S * 200):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("the condition was not met in time")


def response_of(request: InferRequest, number: int, final: bool = False) -> InferResponse:
    return InferResponse(
        [Tensor.from_numpy("OUT", np.array([number]))],
        request.model_name,
        1,
        request.id,
        final=final,
    )


class Tag:
    def __init__(self, flow_control: FlowControl) -> None:
        self.flow_control = flow_control


def stream(end: FrontendEnd, flow_control: FlowControl, delivered: list[int]) -> InferRequest:
    """Return a request to a decoupled model. Its responses wait for `flow_control.take()`."""
    sink = StreamSink(
        end.thread.loop,
        lambda _request, response: delivered.append(int(response.outputs[0].numpy()[0])),
    )
    return InferRequest("repeat", {}, sink, accepts_decoupled=True, tag=Tag(flow_control))


def produce(request: InferRequest, limit: int = 5_000) -> int:
    """Send responses until the stream is full, and return their number."""
    for number in range(limit):
        if not request.sink.ready(request):
            return number
        request.sink.put(request, response_of(request, number))
    return limit


def test_a_producer_waits_while_the_window_is_full_and_resumes_when_responses_are_sent() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (_, end):
        flow_control, delivered = FlowControl(4, 1 << 20), []
        end.engine.infer(stream(end, flow_control, delivered))
        request = held.wait()
        made = produce(request)
        assert 4 <= made < 5_000
        until(lambda: len(delivered) == made)
        assert not request.sink.ready(request)
        again = threading.Event()
        request.sink.when_ready(request, again.set)
        assert not again.is_set()
        for _ in range(made):
            end.thread.do(flow_control.take)
        assert again.wait(WAIT_S), "it was never called"
        until(lambda: request.sink.ready(request))
        assert delivered == list(range(made))


def test_a_cancellation_wakes_a_waiting_producer() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (_, end):
        forwarded = stream(end, FlowControl(4, 1 << 20), [])
        end.engine.infer(forwarded)
        request = held.wait()
        produce(request)
        called = threading.Event()
        request.sink.when_ready(request, called.set)
        forwarded.cancel()
        assert called.wait(WAIT_S)
        assert request.cancelled


def test_requests_of_a_dead_process_are_cancelled_and_producers_resume() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        end.engine.infer(stream(end, FlowControl(4, 1 << 20), []))
        end.engine.infer(InferRequest("identity", {}, RecordingSink().sink))
        held.wait(2)
        streaming, single = held.requests
        produce(streaming)
        called = threading.Event()
        streaming.sink.when_ready(streaming, called.set)
        end.thread.do(end.connection.close)
        assert called.wait(WAIT_S)
        until(lambda: streaming.cancelled and single.cancelled)
        for request in (streaming, single):
            request.sink.put(request, response_of(request, 1, final=True))
        engine.thread.do(lambda: None)
        assert engine.lost == [""]


def test_responses_of_one_loop_iteration_are_one_frame() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        recorder = RecordingSink()
        requests = [
            InferRequest("identity", {}, recorder.sink, id=str(number)) for number in range(40)
        ]
        end.thread.do(lambda: [end.engine.infer(request) for request in requests])
        held.wait(40)
        assert [frame.kind for frame in engine.frames].count(kinds.INFER) == 1
        engine.thread.do(
            lambda: [one.sink.put(one, response_of(one, 1, final=True)) for one in held.requests]
        )
        assert [responses[0].id for responses in recorder.wait(*requests)] == [
            str(number) for number in range(40)
        ]


def test_coalesced_requests_reach_the_engine_together_and_are_refused_individually() -> None:
    class ManyEngine(HoldingEngine):
        def infer_many(
            self, requests: Sequence[InferRequest], refused: Callable[..., None]
        ) -> None:
            for request in requests:
                refused(request, QueueFull(f"no room for {int(request.inputs['IN'].data[0])}"))
            sizes.append(len(requests))

    sizes: list[int] = []
    with ToyEngine() as toy, linked(ManyEngine(toy)) as (_, end):
        recorder = RecordingSink()
        requests = [
            InferRequest(
                "m",
                {"IN": Tensor.from_numpy("IN", np.array([number]))},
                recorder.sink,
                id=f"r{number}",
            )
            for number in range(5)
        ]
        end.engine._single.add(("m", -1))
        end.thread.do(lambda: [end.engine.infer(request) for request in requests])
        refusals = [response for (response,) in recorder.wait(*requests)]
    assert sizes == [5]
    assert [(type(each.error), str(each.error), each.refused, each.id) for each in refusals] == [
        (QueueFull, f"no room for {number}", True, f"r{number}") for number in range(5)
    ]


def test_a_response_that_cannot_be_sent_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        recorder = RecordingSink()
        good, bad = (
            InferRequest("identity", {}, recorder.sink, id=name) for name in ("good", "bad")
        )
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
        first, second = held.requests
        engine.thread.do(
            lambda: (
                first.sink.put(first, response_of(first, 1, final=True)),
                second.sink.put(second, large),
            )
        )
        [[finished], [failed]] = recorder.wait(good, bad)
        assert finished.error is None
        assert isinstance(failed.error, Internal)
        assert "no shared memory for the outputs of model 'identity'" in failed.error.message


@pytest.mark.parametrize("version", [2**63 - 1, 2**70])
def test_a_refusal_of_a_huge_version_arrives_and_later_responses_too(version: int) -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        recorder = RecordingSink()
        strange, plain = (
            InferRequest("m", {}, recorder.sink, version),
            InferRequest("m", {}, recorder.sink),
        )
        for request in (strange, plain):
            end.engine.infer(request)
        held.wait(2)
        refused = [
            InferResponse.failed(request, Internal("no such version")) for request in held.requests
        ]
        engine.thread.do(
            lambda: [
                one.sink.put(one, refusal)
                for one, refusal in zip(held.requests, refused, strict=True)
            ]
        )
        assert all(
            isinstance(response.error, Internal) for [response] in recorder.wait(strange, plain)
        )


@pytest.mark.parametrize(
    ("kind", "words"),
    [(kinds.TAKEN, [1, 5]), (kinds.TAKEN, [1]), (kinds.INFER, []), (kinds.INFER, [1, 2]), (99, [])],
)
def test_a_process_that_sends_malformed_frames_is_disconnected(kind: int, words: list[int]) -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        end.engine.infer(InferRequest("identity", {}, RecordingSink().sink))
        request = held.wait()
        end.thread.do(lambda: end.connection.send(kind, words))
        until(lambda: engine.lost)
        assert "it broke the worker protocol" in engine.lost[0]
        assert request.cancelled


def test_unknown_request_numbers_are_ignored() -> None:
    with ToyEngine() as toy, linked(toy) as (engine, end):
        for kind, words in ((kinds.CANCEL, [7, 8]), (kinds.TAKEN, [7, 1]), (kinds.NOTES, [7])):
            end.thread.do(
                lambda kind=kind, words=words: end.connection.send(
                    kind, words, extras={"stamps": []}
                )
            )
        assert end.engine.is_live()
        assert engine.lost == []
