from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import (
    Batch,
    CallbackSink,
    ComputeTimes,
    FlowControl,
    InferRequest,
    InferResponse,
    LoopSink,
    Sink,
    StreamSink,
    Tensor,
)
from tritonpy_types.errors import Internal


def test_a_request_without_an_owner_gets_one_final_response() -> None:
    recorder = RecordingSink()
    request = InferRequest("m", {}, recorder.sink)
    for final in (False, True, True, False):
        request.respond(InferResponse((), final=final))
    assert [response.final for response in recorder.responses(request)] == [False, True]


def test_a_request_without_an_owner_can_be_cancelled_and_rescheduled() -> None:
    request = InferRequest("m", {}, RecordingSink().sink)
    request.cancel()
    request.reschedule()
    assert request.cancelled
    assert not request.finished


def test_requests_are_compared_by_identity() -> None:
    sink = RecordingSink().sink
    one, other = InferRequest("m", {}, sink), InferRequest("m", {}, sink)
    assert one != other
    assert len({one, other, one}) == 2


def test_a_failed_response_is_final_and_identifies_the_request() -> None:
    request = InferRequest("m", {}, RecordingSink().sink, model_version=3, id="seven")
    response = InferResponse.failed(request, Internal("broken"))
    assert (response.final, response.outputs, response.id, response.model_version) == (
        True,
        (),
        "seven",
        3,
    )
    assert str(response.error) == "broken"


class CountingLoop:
    """Records scheduled callbacks; `run_once` runs one iteration."""

    def __init__(self) -> None:
        self.wakes = 0
        self.calls: list[object] = []

    def call_soon_threadsafe(self, callback: object) -> None:
        self.wakes += 1
        self.calls.append(callback)

    def run_once(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def request_to(sink: object) -> InferRequest:
    return InferRequest("m", {}, sink)


def test_a_batch_of_responses_wakes_the_loop_once() -> None:
    loop, seen = CountingLoop(), []
    sink = LoopSink(loop, lambda request, response: seen.append(response))
    responses = [InferResponse(()) for _ in range(64)]
    for response in responses:
        sink.put(request_to(sink), response)
    assert loop.wakes == 1
    loop.run_once()
    assert seen == responses
    sink.put(request_to(sink), responses[0])
    assert loop.wakes == 2


def test_a_response_put_during_delivery_is_not_lost() -> None:
    loop, seen = CountingLoop(), []

    def deliver(request: InferRequest, response: InferResponse) -> None:
        seen.append(response)
        if len(seen) < 3:
            sink.put(request, response)

    sink = LoopSink(loop, deliver)
    sink.put(request_to(sink), InferResponse(()))
    loop.run_once()
    loop.run_once()
    assert len(seen) == 3


def test_a_failing_delivery_does_not_block_the_rest() -> None:
    loop, seen = CountingLoop(), []

    def deliver(request: InferRequest, response: InferResponse) -> None:
        if response.id == "bad":
            raise ValueError("cannot be encoded")
        seen.append(response.id)

    sink = LoopSink(loop, deliver)
    for name in ("bad", "good"):
        sink.put(request_to(sink), InferResponse((), id=name))
    with pytest.raises(ValueError, match="cannot be encoded"):
        loop.run_once()
    loop.run_once()
    assert seen == ["good"]


def test_responses_to_a_closed_loop_are_dropped() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    sink = LoopSink(loop, lambda request, response: None)
    for _ in range(3):
        sink.put(request_to(sink), InferResponse(()))
    assert not sink._waiting


def test_responses_of_many_threads_all_arrive_on_the_loop() -> None:
    async def receive() -> list[int]:
        done, seen = asyncio.Event(), []

        def deliver(request: InferRequest, response: InferResponse) -> None:
            assert threading.current_thread() is threading.main_thread()
            seen.append(int(response.id))
            if len(seen) == 4000:
                done.set()

        sink = LoopSink(asyncio.get_running_loop(), deliver)

        def put(start: int) -> None:
            for number in range(start, start + 1000):
                sink.put(request_to(sink), InferResponse((), id=str(number)))

        threads = [threading.Thread(target=put, args=(start,)) for start in range(0, 4000, 1000)]
        for thread in threads:
            thread.start()
        async with asyncio.timeout(10):
            await done.wait()
        for thread in threads:
            thread.join()
        return seen

    seen = asyncio.run(receive())
    assert sorted(seen) == list(range(4000))
    assert [each for each in seen if each < 1000] == list(range(1000))  # each thread's in order


def test_a_callback_sink_delivers_immediately() -> None:
    seen = []
    sink = CallbackSink(lambda request, response: seen.append((request, response)))
    request, response = request_to(sink), InferResponse(())
    sink.put(request, response)
    assert seen == [(request, response)]
    assert sink.ready(request)


def partial_response() -> InferResponse:
    return InferResponse([Tensor.from_numpy("OUT", np.zeros(4, np.int32))], final=False)


def stream(max_responses: int = 1) -> tuple[InferRequest, FlowControl, list[InferResponse]]:
    delivered: list[InferResponse] = []
    sink = StreamSink(asyncio.new_event_loop(), lambda _, response: delivered.append(response))
    flow_control = FlowControl(max_responses, 1000)
    return (
        InferRequest("m", {}, sink, tag=SimpleNamespace(flow_control=flow_control)),
        flow_control,
        delivered,
    )


def in_thread(request: InferRequest) -> tuple[threading.Thread, list[bool], threading.Event]:
    """Start a producer that waits for credit.

    Return its thread, its results and its start event.
    """
    results: list[bool] = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        results.append(request.wait_for_credit())

    producer = threading.Thread(target=wait)
    producer.start()
    return producer, results, started


def test_responses_are_counted_with_the_size_of_their_tensors() -> None:
    request, flow_control, delivered = stream(2)
    request.respond(partial_response())
    request.respond(partial_response())
    assert (flow_control.responses, flow_control.nbytes) == (2, 32)
    assert not request.sink.ready(request)
    request.sink._drain()
    assert len(delivered) == 2
    request.sink._loop.close()


def test_a_producer_waits_until_a_response_was_taken() -> None:
    request, flow_control, _ = stream()
    assert request.wait_for_credit()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    assert results == []
    flow_control.take()
    producer.join()
    assert results == [True]
    request.sink._loop.close()


def test_a_cancellation_ends_the_wait_of_a_producer() -> None:
    request, _, _ = stream()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    request.cancel()
    producer.join()
    assert results == [False]
    assert not request.wait_for_credit()
    request.sink._loop.close()


def test_a_disconnected_consumer_ends_the_wait_of_a_producer() -> None:
    request, flow_control, _ = stream()
    request.respond(partial_response())
    producer, results, started = in_thread(request)
    started.wait()
    flow_control.abandon()
    producer.join()
    assert results == [True]
    assert request.wait_for_credit()
    request.sink._loop.close()


def test_other_sinks_have_credit_and_call_back_immediately() -> None:
    called: list[int] = []
    sink: Sink = CallbackSink(lambda request, response: None)
    request = InferRequest("m", {}, sink)
    sink.when_ready(request, lambda: called.append(1))
    assert called == [1]
    assert request.wait_for_credit()
    request.cancel()
    assert not request.wait_for_credit()


def request_of(rows: int, recorder: RecordingSink) -> InferRequest:
    return InferRequest("m", {}, recorder.sink, batch_size=rows, owner=recorder)


def test_the_size_is_the_sum_of_rows_or_the_number_of_slots() -> None:
    recorder = RecordingSink()
    requests = [request_of(rows, recorder) for rows in (1, 2, 3)]
    assert Batch(requests).size == 6
    assert Batch(requests[:1], slots=[None, requests[0], None]).size == 3


def test_the_first_stamp_ends_input_and_each_later_one_ends_inference() -> None:
    batch = Batch([])
    batch.stamp()
    ended, nothing = batch.input_end_ns, batch.infer_end_ns
    batch.stamp()
    first = batch.infer_end_ns
    batch.stamp()
    assert nothing == 0
    assert 0 < ended == batch.input_end_ns <= first <= batch.infer_end_ns


def test_a_batch_responds_through_the_owner_of_its_requests() -> None:
    recorder = RecordingSink()
    requests = [request_of(1, recorder) for _ in range(3)]
    Batch(requests).respond([InferResponse((), id=str(number)) for number in range(3)])
    assert [recorder.responses(each)[0].id for each in requests] == ["0", "1", "2"]
    Batch([]).respond([])


def test_a_response_before_the_last_stamp_has_no_output_time() -> None:
    batch = Batch([], start_ns=100, input_end_ns=110, infer_end_ns=130)
    assert ComputeTimes.of(batch, 160).output_ns == 30
    assert ComputeTimes.of(batch, 120).output_ns == 0


def test_parts_add_up_and_the_start_stays() -> None:
    times = ComputeTimes(7, 1, 2, 3)
    times.add(ComputeTimes(100, 10, 20, 30))
    assert (times.start_ns, times.input_ns, times.infer_ns, times.output_ns) == (7, 11, 22, 33)
