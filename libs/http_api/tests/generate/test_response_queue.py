from __future__ import annotations

import asyncio

from tritonpy import InferResponse
from tritonpy.frontend import FlowControl
from tritonpy_http_api.generate.response_queue import ResponseQueue


def response(final: bool = False, empty: bool = False) -> InferResponse:
    return InferResponse((), "m", 1, final=final, empty=empty)


def put(answers: ResponseQueue, one: InferResponse) -> InferResponse:
    answers.flow_control.put(10)  # as the sink does
    answers.put(one)
    return one


def run(scenario):
    asyncio.run(scenario(ResponseQueue(FlowControl(2, 1000))))


def test_responses_are_returned_in_order_and_then_none():
    async def scenario(answers: ResponseQueue) -> None:
        first, second = put(answers, response()), put(answers, response(final=True))
        assert await answers.next() is first
        assert await answers.next() is second
        assert await answers.next() is None
        assert answers.complete

    run(scenario)


def test_next_waits_for_a_response():
    async def scenario(answers: ResponseQueue) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        given = put(answers, response())
        assert await waiting is given

    run(scenario)


def test_an_empty_final_response_ends_the_queue():
    async def scenario(answers: ResponseQueue) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        put(answers, response(final=True, empty=True))
        assert await waiting is None
        assert answers.flow_control.responses == 0

    run(scenario)


def test_a_response_counts_until_it_is_sent():
    async def scenario(answers: ResponseQueue) -> None:
        put(answers, response())
        put(answers, response())
        assert not answers.flow_control.ready
        await answers.next()
        assert not answers.flow_control.ready
        answers.sent()
        assert answers.flow_control.ready
        assert (answers.flow_control.responses, answers.flow_control.nbytes) == (1, 10)

    run(scenario)


def test_abandon_discards_responses_and_releases_the_producer():
    async def scenario(answers: ResponseQueue) -> None:
        called: list[int] = []
        put(answers, response())
        put(answers, response())
        answers.flow_control.when_ready(lambda: called.append(1))
        answers.abandon()
        assert called == [1]
        assert await answers.next() is None
        put(answers, response())
        assert await answers.next() is None
        assert (answers.flow_control.responses, answers.flow_control.nbytes, answers.complete) == (
            0,
            0,
            False,
        )

    run(scenario)


def test_abandon_wakes_the_waiting_reader():
    async def scenario(answers: ResponseQueue) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        answers.abandon()
        assert await waiting is None

    run(scenario)
