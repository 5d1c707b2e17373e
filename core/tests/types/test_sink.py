from __future__ import annotations

import asyncio
import threading

import pytest

from tritonpy.types import CallbackSink, InferRequest, InferResponse, LoopSink


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
