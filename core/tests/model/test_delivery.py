from __future__ import annotations

import random
import threading

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.delivery import ImmediateDelivery, OrderedDelivery
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import CallbackSink, InferRequest, InferResponse

RESPONSE = InferResponse(())


def requests_to(sink: object, count: int) -> list[InferRequest]:
    return [InferRequest("m", {}, sink, id=str(number)) for number in range(count)]


def test_immediate_delivery_sends_responses_immediately() -> None:
    recorder = RecordingSink()
    first, second = requests_to(recorder.sink, 2)
    delivery = ImmediateDelivery()
    delivery.register([first])
    delivery.deliver([(second, RESPONSE)])
    assert recorder.requests == [second]


@given(st.permutations(range(8)))
def test_responses_are_sent_in_the_order_of_arrival(order: list[int]) -> None:
    recorder = RecordingSink()
    requests = requests_to(recorder.sink, 8)
    delivery = OrderedDelivery()
    delivery.register(requests)
    for index in order:
        delivery.deliver([(requests[index], RESPONSE)])
    assert recorder.requests == requests
    recorder.check(*requests)


def test_the_first_request_streams_and_others_wait_for_its_final_response() -> None:
    recorder = RecordingSink()
    first, second = requests_to(recorder.sink, 2)
    delivery = OrderedDelivery()
    delivery.register([first])
    delivery.register([second])
    part = InferResponse((), final=False)
    delivery.deliver([(second, RESPONSE), (first, part)])
    assert (recorder.responses(first), recorder.responses(second)) == ([part], [])
    delivery.deliver([(first, RESPONSE)])
    assert (recorder.responses(first), recorder.responses(second)) == ([part, RESPONSE], [RESPONSE])


def test_a_rejected_request_does_not_delay_others() -> None:
    recorder = RecordingSink()
    refused, taken = requests_to(recorder.sink, 2)
    delivery = OrderedDelivery()
    delivery.register([refused])
    delivery.unregister(refused)
    delivery.register([taken])
    delivery.deliver([(taken, RESPONSE)])
    assert recorder.requests == [taken]


def test_a_sink_may_deliver_the_next_response_itself() -> None:
    delivery, seen = OrderedDelivery(), []

    def deliver(request: InferRequest, response: InferResponse) -> None:
        seen.append(request)
        following = len(seen)
        if following < len(requests):
            delivery.deliver([(requests[following], RESPONSE)])

    requests = requests_to(CallbackSink(deliver), 2000)  # more than the recursion limit
    delivery.register(requests)
    delivery.deliver([(requests[0], RESPONSE)])
    assert seen == requests


def test_the_order_is_kept_across_threads() -> None:
    recorder = RecordingSink()
    requests = requests_to(recorder.sink, 2000)
    delivery = OrderedDelivery()
    delivery.register(requests)
    shuffled = random.Random(7).sample(requests, len(requests))

    def deliver(share: list[InferRequest]) -> None:
        for request in share:
            delivery.deliver([(request, RESPONSE)])

    threads = [threading.Thread(target=deliver, args=(shuffled[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.requests == requests
