from __future__ import annotations

import random
import threading

from hypothesis import given
from hypothesis import strategies as st

from tritonpy.model.ordering import AsTheyCome, InArrivalOrder
from tritonpy.testing.witness import Witness
from tritonpy.types import CallbackSink, InferRequest, InferResponse

ANSWER = InferResponse(())


def requests_to(sink: object, count: int) -> list[InferRequest]:
    return [InferRequest("m", {}, sink, id=str(number)) for number in range(count)]


def test_without_an_order_answers_leave_as_they_come() -> None:
    witness = Witness()
    first, second = requests_to(witness.sink, 2)
    delivery = AsTheyCome()
    delivery.expect([first])
    delivery.deliver([(second, ANSWER)])
    assert witness.requests == [second]


@given(st.permutations(range(8)))
def test_answers_leave_in_the_order_of_arrival(order: list[int]) -> None:
    witness = Witness()
    requests = requests_to(witness.sink, 8)
    delivery = InArrivalOrder()
    delivery.expect(requests)
    for index in order:
        delivery.deliver([(requests[index], ANSWER)])
    assert witness.requests == requests
    witness.check(*requests)


def test_the_first_of_the_line_streams_and_the_others_wait_for_its_final_answer() -> None:
    witness = Witness()
    first, second = requests_to(witness.sink, 2)
    delivery = InArrivalOrder()
    delivery.expect([first])
    delivery.expect([second])
    part = InferResponse((), final=False)
    delivery.deliver([(second, ANSWER), (first, part)])
    assert (witness.answers(first), witness.answers(second)) == ([part], [])
    delivery.deliver([(first, ANSWER)])
    assert (witness.answers(first), witness.answers(second)) == ([part, ANSWER], [ANSWER])


def test_a_refused_arrival_holds_nobody_up() -> None:
    witness = Witness()
    refused, taken = requests_to(witness.sink, 2)
    delivery = InArrivalOrder()
    delivery.expect([refused])
    delivery.forget(refused)
    delivery.expect([taken])
    delivery.deliver([(taken, ANSWER)])
    assert witness.requests == [taken]


def test_a_sink_may_bring_the_next_answer_itself() -> None:
    delivery, seen = InArrivalOrder(), []

    def deliver(request: InferRequest, response: InferResponse) -> None:
        seen.append(request)
        following = len(seen)
        if following < len(requests):
            delivery.deliver([(requests[following], ANSWER)])

    requests = requests_to(CallbackSink(deliver), 2000)  # deeper than the stack
    delivery.expect(requests)
    delivery.deliver([(requests[0], ANSWER)])
    assert seen == requests


def test_the_order_holds_between_threads() -> None:
    witness = Witness()
    requests = requests_to(witness.sink, 2000)
    delivery = InArrivalOrder()
    delivery.expect(requests)
    shuffled = random.Random(7).sample(requests, len(requests))

    def deliver(share: list[InferRequest]) -> None:
        for request in share:
            delivery.deliver([(request, ANSWER)])

    threads = [threading.Thread(target=deliver, args=(shuffled[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert witness.requests == requests
