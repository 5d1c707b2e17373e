"""The memory budget bounds received messages, decompressed data and unread responses in total."""

from __future__ import annotations

import asyncio
import os

import grpc
import numpy as np
import pytest

from tritonpy.frontend import RequestMemory
from tritonpy_protos.grpc_service_pb2 import (
    LogSettingsRequest,
    ModelInferRequest,
    RepositoryModelLoadRequest,
)

from .fake_engine import FakeEngine, eventually, run, serving
from .frames import DATA, HEADERS, HELLO, INFER, STREAM, RawConnection, frame, head
from .test_abandoned_calls import ReleasingEngine, begun

LIMIT = 2**20
SERVICE = "/inference.GRPCInferenceService/"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
ASSEMBLES = pytest.mark.skipif(
    os.environ.get("TRITONPY_TEST_TRANSPORT") == "grpcio",
    reason="needs a server with access to incomplete messages",
)


def message(model, size):
    infer_request = ModelInferRequest(
        model_name=model, raw_input_contents=[np.zeros(size, np.uint8).tobytes()]
    )
    infer_request.inputs.add(name="IN", datatype="UINT8", shape=[size])
    return infer_request.SerializeToString()


async def outcome(channel, path, sent, compression=None):
    """Return status and text of a call."""
    try:
        await channel.unary_unary(SERVICE + path)(sent, compression=compression, timeout=20)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def bounded(scenario, engine=None, limit=LIMIT, **options):
    """Run a scenario with a channel to a server with a small memory budget."""

    async def whole():
        memory = RequestMemory(limit)
        async with (
            serving(engine or FakeEngine(), memory=memory, **options) as frontend,
            grpc.aio.insecure_channel(frontend.address(), UNLIMITED) as channel,
        ):
            await scenario(channel, memory, int(frontend.address().rpartition(":")[2]))
        await eventually(lambda: memory.used == 0, lambda: memory.used)

    run(whole)


def test_a_message_beyond_the_memory_budget_names_the_option():
    async def scenario(channel, memory, _port):
        status, text = await outcome(channel, "ModelInfer", message("identity", LIMIT))
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "bytes for requests and unsent responses are in use" in text
        assert "--request-memory" in text
        assert memory.refused
        assert (await outcome(channel, "ModelInfer", message("identity", 100_000)))[
            0
        ] is grpc.StatusCode.OK

    bounded(scenario)


def test_a_load_beyond_the_memory_budget_is_refused():
    async def scenario(channel, _memory, _port):
        loading = RepositoryModelLoadRequest(model_name="m")
        loading.parameters["file:1/model"].bytes_param = bytes(LIMIT)
        status, _ = await outcome(channel, "RepositoryModelLoad", loading.SerializeToString())
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED

    bounded(scenario)


def test_decompressed_data_counts_against_the_memory_budget():
    async def scenario(channel, memory, _port):
        infer_request = message("identity", 2 * LIMIT), grpc.Compression.Gzip
        status, _ = await outcome(channel, "ModelInfer", *infer_request)
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert memory.refused

    bounded(scenario)


@ASSEMBLES
@pytest.mark.parametrize("path", [INFER, STREAM, SERVICE + "RepositoryModelLoad"])
def test_incomplete_messages_count_against_the_memory_budget(path):
    async def scenario(channel, memory, port):
        part = b"\0" + (2 * LIMIT).to_bytes(4, "big") + bytes(LIMIT // 4)
        connections = [
            await asyncio.to_thread(RawConnection, port, begun(path, part)) for _ in range(8)
        ]
        await eventually(lambda: memory.refused)
        assert memory.used <= LIMIT
        for _ in range(20):  # small requests of other clients are served
            assert (await outcome(channel, "ModelInfer", message("identity", 10)))[
                0
            ] is grpc.StatusCode.OK
        for connection in connections:
            connection.__exit__()

    bounded(scenario)


@ASSEMBLES
def test_many_open_calls_count_against_the_memory_budget():
    async def scenario(_channel, memory, port):
        calls = b"".join(frame(HEADERS, 4, 2 * number + 1, head(INFER)) for number in range(500))
        connection = await asyncio.to_thread(RawConnection, port, HELLO + calls)
        await eventually(lambda: memory.refused)
        connection.__exit__()

    bounded(scenario)


@ASSEMBLES
def test_unread_responses_count_against_the_memory_budget():
    closed = frame(4, 0, 0, b"\0\4\0\0\0\0")  # an empty window

    async def scenario(channel, memory, port):
        raw = message("identity", LIMIT // 8)
        frame_message = b"\0" + len(raw).to_bytes(4, "big") + raw
        parts = [frame_message[at : at + 16384] for at in range(0, len(frame_message), 16384)]
        sent = HELLO + closed
        for stream in range(1, 20, 2):
            sent += frame(HEADERS, 4, stream, head(INFER))
            sent += b"".join(frame(DATA, part is parts[-1], stream, part) for part in parts)
        connection = await asyncio.to_thread(RawConnection, port, sent)
        await eventually(lambda: memory.refused)
        assert memory.used <= LIMIT
        assert (await outcome(channel, "ModelInfer", message("identity", 10)))[
            0
        ] is grpc.StatusCode.OK
        connection.__exit__()

    bounded(scenario)


def test_requests_of_a_stream_count_against_the_memory_budget():
    async def scenario(channel, memory, _port):
        call = channel.stream_stream(STREAM)()
        for _ in range(12):
            await call.write(message("later", LIMIT // 8))
        await eventually(lambda: memory.refused)
        assert memory.used <= LIMIT
        call.cancel()
        await eventually(lambda: engine.respond_to_cancelled() or not engine.held)

    engine = ReleasingEngine()
    bounded(scenario, engine)


def test_a_message_above_max_body_bytes_is_refused():
    async def scenario(channel, _memory, _port):
        assert (await outcome(channel, "ModelInfer", message("identity", 900)))[
            0
        ] is grpc.StatusCode.OK
        for size in (1000, 100_000, 1_000_000):
            status, text = await outcome(channel, "ModelInfer", message("identity", size))
            assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "1000" in text

    bounded(scenario, limit=0, max_body_bytes=1000)


@ASSEMBLES
def test_a_management_message_is_limited_to_one_mebibyte():
    async def scenario(channel, _memory, _port):
        infer_request = LogSettingsRequest()
        infer_request.settings["log_file"].string_param = "x" * 2**20
        status, text = await outcome(channel, "LogSettings", infer_request.SerializeToString())
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "the maximum is 1048576 bytes" in text
        loading = RepositoryModelLoadRequest(model_name="m")
        loading.parameters["file:1/model"].bytes_param = bytes(2**21)
        assert (await outcome(channel, "RepositoryModelLoad", loading.SerializeToString()))[
            0
        ] is grpc.StatusCode.OK

    bounded(scenario, limit=0)
