from __future__ import annotations

import asyncio

import pytest

from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.load.exchange import Exchange, Lost
from tritonpy_bench.load.jobs import Job
from tritonpy_bench.wire.grpc_messages import GrpcMessages, unframe
from tritonpy_bench.wire.grpc_stream import GrpcStream, StreamCarrier
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, ModelStreamInferResponse

from .facts import INTS, model, options, target


class FakeConnection:
    """A connection, and its channel, whose answers a test gives; `broken` refuses to connect."""

    def __init__(self):
        self.connection = self
        self.broken = False
        self.calls = []
        self.written = []

    async def connect(self):
        if self.broken:
            raise OSError("refused")
        self.connection = self
        return self

    def start(self, stream, message, end):
        assert not end
        self.calls.append(stream)
        self.send(stream, message, end)

    def send(self, stream, message, end):
        assert stream is self.calls[-1]
        [request], rest = unframe(message)
        assert rest == b""
        self.written.append(ModelInferRequest.FromString(request).id)

    def cancel(self, stream):
        pass

    def give(self, request_id, error="", outputs=1, final=None, pieces=1):
        answer = ModelStreamInferResponse(error_message=error)
        answer.infer_response.id = request_id
        for _ in range(outputs):
            answer.infer_response.outputs.add()
        if final is not None:
            answer.infer_response.parameters["triton_final_response"].bool_param = final
        raw = answer.SerializeToString()
        framed = b"\0" + len(raw).to_bytes(4, "big") + raw
        cut = len(framed) // pieces
        for at in range(0, len(framed), cut):
            self.calls[-1].data_received(framed[at : at + cut])

    def end(self, status=None, message="", reset=None):
        if status is not None:
            self.calls[-1].headers_received({"grpc-status": status, "grpc-message": message})
        self.calls[-1].ended(reset)


class World:
    """Two carriers on one stream, and what ended."""

    def __init__(self, decoupled):
        facts = target(model(INTS, decoupled=decoupled))
        messages = GrpcMessages(facts, options(), make_corpus(facts.model, options()), None)
        self.wire = FakeConnection()
        self.stream = GrpcStream(self.wire, decoupled)
        self.carriers = [StreamCarrier(number, self.stream, messages) for number in range(2)]
        self.ended = asyncio.Queue()
        for carrier in self.carriers:
            carrier.on_end = lambda carrier, exchange, error: self.ended.put_nowait((carrier.number, exchange, error))

    async def send(self, number):
        """Return the id that the request had on the wire."""
        self.carriers[number].send(Exchange(Job(0), 0, 0, 0))
        return self.wire.written[-1]


def run(decoupled):
    def decorate(coroutine):
        def test():
            async def main():
                world = World(decoupled)
                await coroutine(world)

            asyncio.run(main())

        return test

    return decorate


@run(decoupled=False)
async def test_answers_find_their_request_in_any_order(world):
    first, second = await world.send(0), await world.send(1)
    world.wire.give(second)
    world.wire.give(first)
    assert [(await world.ended.get())[::2] for _ in range(2)] == [(1, None), (0, None)]
    assert len(world.wire.calls) == 1


@run(decoupled=True)
async def test_a_decoupled_request_ends_with_its_final_answer(world):
    first, second = await world.send(0), await world.send(1)
    call = world.wire
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
    world.wire.give(name, final=True)
    _, exchange, _ = await world.ended.get()
    assert (exchange.responses, exchange.between) == (1, [])


@run(decoupled=True)
async def test_an_error_ends_its_request_and_what_follows_is_not_the_next_ones(world):
    name = await world.send(0)
    world.wire.give(name, error="bad", outputs=0)
    assert (await world.ended.get())[2] == "bad"
    again = await world.send(0)
    world.wire.give(name, final=True)  # late, of the request that ended
    world.wire.give(again, outputs=0, final=True)
    _, exchange, error = await world.ended.get()
    assert (exchange.responses, error) == (0, None)


@run(decoupled=False)
async def test_an_error_without_a_name_is_the_oldest_requests(world):
    await world.send(0)
    await world.send(1)
    world.wire.give("", error="bad", outputs=0)
    assert (await world.ended.get())[::2] == (0, "bad")


@run(decoupled=False)
async def test_a_stream_that_ends_takes_its_requests_with_it_and_the_next_one_begins_anew(world):
    await world.send(0)
    await world.send(1)
    world.wire.end()
    for _ in range(2):
        error = (await world.ended.get())[2]
        assert isinstance(error, Lost)
        assert error == "the server ended the stream"
    name = await world.send(0)
    world.wire.give(name)
    assert (await world.ended.get())[2] is None


@run(decoupled=False)
async def test_a_stream_that_breaks_says_why(world):
    await world.send(0)
    world.wire.end("8", "too%20much")
    assert (await world.ended.get())[2] == "RESOURCE_EXHAUSTED: too much"


@pytest.mark.parametrize("final", [None, False])
def test_an_answer_that_does_not_say_that_it_is_final_ends_nothing(final):
    @run(decoupled=True)
    async def test(world):
        name = await world.send(0)
        world.wire.give(name, final=final)
        world.wire.give(name, final=True)
        _, exchange, _ = await world.ended.get()
        assert exchange.responses == 2

    test()


@run(decoupled=False)
async def test_an_answer_may_arrive_in_pieces(world):
    name = await world.send(0)
    world.wire.give(name, pieces=3)
    assert (await world.ended.get())[2] is None


@run(decoupled=False)
async def test_a_stream_that_is_reset_ends_its_requests_with_the_reason(world):
    await world.send(0)
    world.wire.end(reset="ENHANCE_YOUR_CALM")
    assert (await world.ended.get())[2] == "INTERNAL: the server reset the stream with ENHANCE_YOUR_CALM"


@run(decoupled=False)
async def test_requests_wait_for_a_connection_and_are_lost_if_there_is_none(world):
    world.wire.connection, world.wire.broken = None, True
    for number in range(2):
        world.carriers[number].send(Exchange(Job(0), 0, 0, 0))
    assert {(await world.ended.get())[2] for _ in range(2)} == {"UNAVAILABLE: no connection: refused"}
    world.wire.broken = False
    for number in range(2):
        world.carriers[number].send(Exchange(Job(0), 0, 0, 0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.wire.written == ["3", "4"]
    world.wire.give("4")
    assert (await world.ended.get())[::2] == (1, None)


@run(decoupled=False)
async def test_an_answer_that_cannot_be_read_ends_the_stream(world):
    await world.send(0)
    world.wire.calls[-1].data_received(b"\0\0\0\0\1\xff")
    assert "INTERNAL: a response cannot be read" in (await world.ended.get())[2]
