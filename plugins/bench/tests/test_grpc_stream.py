from __future__ import annotations

import asyncio

import grpc
import pytest

from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.load.exchange import Exchange, Lost
from tritonpy_bench.load.jobs import Job
from tritonpy_bench.wire.grpc_messages import GrpcMessages
from tritonpy_bench.wire.grpc_stream import GrpcStream, StreamCarrier
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, ModelStreamInferResponse

from .facts import INTS, model, options, target


class FakeCall:
    """A stream whose answers a test gives; None ends it."""

    def __init__(self):
        self.written = asyncio.Queue()
        self._answers = asyncio.Queue()

    async def write(self, raw):
        self.written.put_nowait(ModelInferRequest.FromString(raw))

    async def read(self):
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return grpc.aio.EOF if answer is None else answer

    def cancel(self):
        pass

    def give(self, request_id, error="", outputs=1, final=None):
        answer = ModelStreamInferResponse(error_message=error)
        answer.infer_response.id = request_id
        for _ in range(outputs):
            answer.infer_response.outputs.add()
        if final is not None:
            answer.infer_response.parameters["triton_final_response"].bool_param = final
        self._answers.put_nowait(answer.SerializeToString())

    def end(self, error=None):
        self._answers.put_nowait(error)


class World:
    """Two carriers on one stream, and what ended."""

    def __init__(self, decoupled):
        facts = target(model(INTS, decoupled=decoupled))
        messages = GrpcMessages(facts, options(), make_corpus(facts.model, options()), None)
        self.calls = []
        self.stream = GrpcStream(self._begin, decoupled)
        self.carriers = [StreamCarrier(number, self.stream, messages) for number in range(2)]
        self.ended = asyncio.Queue()
        for carrier in self.carriers:
            carrier.on_end = lambda carrier, exchange, error: self.ended.put_nowait((carrier.number, exchange, error))

    def _begin(self):
        self.calls.append(FakeCall())
        return self.calls[-1]

    async def send(self, number):
        """Return the id that the request had on the wire."""
        self.carriers[number].send(Exchange(Job(0), 0, 0, 0))
        return (await self.calls[-1].written.get()).id


def run(decoupled):
    def decorate(coroutine):
        def test():
            async def main():
                world = World(decoupled)
                await coroutine(world)
                world.stream.close()

            asyncio.run(main())

        return test

    return decorate


@run(decoupled=False)
async def test_answers_find_their_request_in_any_order(world):
    first, second = await world.send(0), await world.send(1)
    world.calls[0].give(second)
    world.calls[0].give(first)
    assert [(await world.ended.get())[::2] for _ in range(2)] == [(1, None), (0, None)]
    assert len(world.calls) == 1


@run(decoupled=True)
async def test_a_decoupled_request_ends_with_its_final_answer(world):
    first, second = await world.send(0), await world.send(1)
    call = world.calls[0]
    call.give(first, final=False)
    call.give(first, final=False)
    call.give(second, outputs=0, final=True)
    call.give(first, outputs=0, final=True)
    number, exchange, error = await world.ended.get()
    assert (number, exchange.responses, error) == (1, 0, None)
    number, exchange, error = await world.ended.get()
    assert (number, exchange.responses, len(exchange.between), error) == (0, 2, 1, None)


@run(decoupled=True)
async def test_a_final_answer_with_data_counts(world):
    name = await world.send(0)
    world.calls[0].give(name, final=True)
    _, exchange, _ = await world.ended.get()
    assert (exchange.responses, exchange.between) == (1, [])


@run(decoupled=True)
async def test_an_error_ends_its_request_and_what_follows_is_not_the_next_ones(world):
    name = await world.send(0)
    world.calls[0].give(name, error="bad", outputs=0)
    assert (await world.ended.get())[2] == "bad"
    again = await world.send(0)
    world.calls[0].give(name, final=True)  # late, of the request that ended
    world.calls[0].give(again, outputs=0, final=True)
    _, exchange, error = await world.ended.get()
    assert (exchange.responses, error) == (0, None)


@run(decoupled=False)
async def test_an_error_without_a_name_is_the_oldest_requests(world):
    await world.send(0)
    await world.send(1)
    world.calls[0].give("", error="bad", outputs=0)
    assert (await world.ended.get())[::2] == (0, "bad")


@run(decoupled=False)
async def test_a_stream_that_ends_takes_its_requests_with_it_and_the_next_one_begins_anew(world):
    await world.send(0)
    await world.send(1)
    world.calls[0].end()
    for _ in range(2):
        error = (await world.ended.get())[2]
        assert isinstance(error, Lost)
        assert error == "the server ended the stream"
    name = await world.send(0)
    world.calls[1].give(name)
    assert (await world.ended.get())[2] is None


@run(decoupled=False)
async def test_a_stream_that_breaks_says_why(world):
    await world.send(0)
    metadata = grpc.aio.Metadata()
    world.calls[0].end(grpc.aio.AioRpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, metadata, metadata, "too much"))
    assert (await world.ended.get())[2] == "RESOURCE_EXHAUSTED: too much"


@pytest.mark.parametrize("final", [None, False])
def test_an_answer_that_does_not_say_that_it_is_final_ends_nothing(final):
    @run(decoupled=True)
    async def test(world):
        name = await world.send(0)
        world.calls[0].give(name, final=final)
        world.calls[0].give(name, final=True)
        _, exchange, _ = await world.ended.get()
        assert exchange.responses == 2

    test()
