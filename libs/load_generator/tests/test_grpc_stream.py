from __future__ import annotations

import asyncio

import pytest

from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.loops.exchange import Exchange, LostConnection
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.wire.grpc_messages import GrpcMessages, unframe
from tritonpy_load_generator.wire.grpc_stream import GrpcStream, StreamSender
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, ModelStreamInferResponse

from .metadata import INTS, model, options, target


class FakeConnection:
    """A connection and its channel, with responses from the test; `refuses` makes connecting fail."""

    def __init__(self):
        self.connection = self
        self.refuses = False
        self.calls = []
        self.written = []

    async def connect(self):
        if self.refuses:
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

    def respond(self, request_id, error="", outputs=1, final=None, pieces=1):
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


class StreamHarness:
    """Two senders on one stream, and a queue of ended requests."""

    def __init__(self, decoupled):
        description = target(model(INTS, decoupled=decoupled))
        messages = GrpcMessages(
            description, options(), make_corpus(description.model, options()), None
        )
        self.connection = FakeConnection()
        self.stream = GrpcStream(self.connection, decoupled)
        self.senders = [StreamSender(number, self.stream, messages) for number in range(2)]
        self.ended = asyncio.Queue()
        for sender in self.senders:
            sender.on_end = lambda sender, exchange, error: self.ended.put_nowait(
                (sender.number, exchange, error)
            )

    async def send(self, number):
        """Send a request and return its id."""
        self.senders[number].send(Exchange(Job(0), 0, 0, 0))
        return self.connection.written[-1]


def run(decoupled):
    def decorate(coroutine):
        def test():
            async def main():
                harness = StreamHarness(decoupled)
                await coroutine(harness)

            asyncio.run(main())

        return test

    return decorate


@run(decoupled=False)
async def test_responses_match_requests_in_any_order(harness):
    first, second = await harness.send(0), await harness.send(1)
    harness.connection.respond(second)
    harness.connection.respond(first)
    assert [(await harness.ended.get())[::2] for _ in range(2)] == [(1, None), (0, None)]
    assert len(harness.connection.calls) == 1


@run(decoupled=True)
async def test_a_decoupled_request_ends_with_its_final_response(harness):
    first, second = await harness.send(0), await harness.send(1)
    call = harness.connection
    call.respond(first, final=False)
    call.respond(first, final=False)
    call.respond(second, outputs=0, final=True)
    call.respond(first, outputs=0, final=True)
    number, exchange, error = await harness.ended.get()
    assert (number, exchange.responses, error) == (1, 0, None)
    number, exchange, error = await harness.ended.get()
    assert (number, exchange.responses, len(exchange.between), error) == (0, 2, 1, None)


@run(decoupled=True)
async def test_a_final_response_with_data_counts(harness):
    name = await harness.send(0)
    harness.connection.respond(name, final=True)
    _, exchange, _ = await harness.ended.get()
    assert (exchange.responses, exchange.between) == (1, [])


@run(decoupled=True)
async def test_a_late_response_after_an_error_is_ignored(harness):
    name = await harness.send(0)
    harness.connection.respond(name, error="bad", outputs=0)
    assert (await harness.ended.get())[2] == "bad"
    again = await harness.send(0)
    harness.connection.respond(name, final=True)  # late, of the request that ended
    harness.connection.respond(again, outputs=0, final=True)
    _, exchange, error = await harness.ended.get()
    assert (exchange.responses, error) == (0, None)


@run(decoupled=False)
async def test_an_error_without_id_belongs_to_the_oldest_request(harness):
    await harness.send(0)
    await harness.send(1)
    harness.connection.respond("", error="bad", outputs=0)
    assert (await harness.ended.get())[::2] == (0, "bad")


@run(decoupled=False)
async def test_an_ended_stream_fails_its_requests_and_the_next_one_starts_fresh(harness):
    await harness.send(0)
    await harness.send(1)
    harness.connection.end()
    for _ in range(2):
        error = (await harness.ended.get())[2]
        assert isinstance(error, LostConnection)
        assert error == "the server ended the stream"
    name = await harness.send(0)
    harness.connection.respond(name)
    assert (await harness.ended.get())[2] is None


@run(decoupled=False)
async def test_a_failed_stream_reports_its_status(harness):
    await harness.send(0)
    harness.connection.end("8", "too%20much")
    assert (await harness.ended.get())[2] == "RESOURCE_EXHAUSTED: too much"


@pytest.mark.parametrize("final", [None, False])
def test_a_response_without_final_flag_does_not_end_the_request(final):
    @run(decoupled=True)
    async def test(harness):
        name = await harness.send(0)
        harness.connection.respond(name, final=final)
        harness.connection.respond(name, final=True)
        _, exchange, _ = await harness.ended.get()
        assert exchange.responses == 2

    test()


@run(decoupled=False)
async def test_a_response_may_arrive_in_pieces(harness):
    name = await harness.send(0)
    harness.connection.respond(name, pieces=3)
    assert (await harness.ended.get())[2] is None


@run(decoupled=False)
async def test_a_stream_that_is_reset_ends_its_requests_with_the_reason(harness):
    await harness.send(0)
    harness.connection.end(reset="ENHANCE_YOUR_CALM")
    assert (await harness.ended.get())[
        2
    ] == "INTERNAL: the server reset the stream with ENHANCE_YOUR_CALM"


@run(decoupled=False)
async def test_requests_wait_for_a_connection_and_fail_if_it_is_refused(harness):
    harness.connection.connection, harness.connection.refuses = None, True
    for number in range(2):
        harness.senders[number].send(Exchange(Job(0), 0, 0, 0))
    assert {(await harness.ended.get())[2] for _ in range(2)} == {
        "UNAVAILABLE: no connection: refused"
    }
    harness.connection.refuses = False
    for number in range(2):
        harness.senders[number].send(Exchange(Job(0), 0, 0, 0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert harness.connection.written == ["3", "4"]
    harness.connection.respond("4")
    assert (await harness.ended.get())[::2] == (1, None)


@run(decoupled=False)
async def test_an_invalid_response_ends_the_stream(harness):
    await harness.send(0)
    harness.connection.calls[-1].data_received(b"\0\0\0\0\1\xff")
    assert "INTERNAL: a response cannot be read" in (await harness.ended.get())[2]
