from __future__ import annotations

import asyncio

from tritonpy import InferResponse, Room
from tritonpy_frontend_http.generate.answers import Answers


def response(final: bool = False, empty: bool = False) -> InferResponse:
    return InferResponse((), "m", 1, final=final, empty=empty)


def put(answers: Answers, one: InferResponse) -> InferResponse:
    answers.room.put(10)  # as the sink does
    answers.put(one)
    return one


def run(scenario):
    asyncio.run(scenario(Answers(Room(2, 1000))))


def test_answers_come_in_order_and_then_no_more():
    async def scenario(answers: Answers) -> None:
        first, second = put(answers, response()), put(answers, response(final=True))
        assert await answers.next() is first
        assert await answers.next() is second
        assert await answers.next() is None
        assert answers.complete

    run(scenario)


def test_who_waits_gets_an_answer_when_it_comes():
    async def scenario(answers: Answers) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        given = put(answers, response())
        assert await waiting is given

    run(scenario)


def test_an_empty_answer_only_ends_the_rest():
    async def scenario(answers: Answers) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        put(answers, response(final=True, empty=True))
        assert await waiting is None
        assert answers.room.answers == 0

    run(scenario)


def test_an_answer_takes_room_until_it_was_sent():
    async def scenario(answers: Answers) -> None:
        put(answers, response())
        put(answers, response())
        assert not answers.room.ready
        await answers.next()
        assert not answers.room.ready
        answers.sent()
        assert answers.room.ready
        assert (answers.room.answers, answers.room.nbytes) == (1, 10)

    run(scenario)


def test_abandoned_answers_are_forgotten_and_nobody_waits():
    async def scenario(answers: Answers) -> None:
        called: list[int] = []
        put(answers, response())
        put(answers, response())
        answers.room.when_ready(lambda: called.append(1))
        answers.abandon()
        assert called == [1]
        assert await answers.next() is None
        put(answers, response())
        assert await answers.next() is None
        assert (answers.room.answers, answers.room.nbytes, answers.complete) == (0, 0, False)

    run(scenario)


def test_who_waits_hears_that_nobody_wants_answers_any_more():
    async def scenario(answers: Answers) -> None:
        waiting = asyncio.create_task(answers.next())
        await asyncio.sleep(0)
        answers.abandon()
        assert await waiting is None

    run(scenario)
