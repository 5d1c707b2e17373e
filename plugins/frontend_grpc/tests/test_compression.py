"""Tests of compressed requests and responses."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc.aio as client
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from tritonpy_protos.grpc_service_pb2 import (
    ModelInferRequest,
    ModelStreamInferResponse,
    ServerMetadataResponse,
)

from .fake_engine import FakeEngine, run, serving

ALGORITHMS = [grpc.Compression.Gzip, grpc.Compression.Deflate]
SERVICE = "/inference.GRPCInferenceService/"
SIZE = 100_000


def message(size=SIZE, model="identity"):
    request = ModelInferRequest(model_name=model, id="1", raw_input_contents=[bytes(size)])
    request.inputs.add(name="IN", datatype="UINT8", shape=[size])
    return request.SerializeToString()


@pytest.mark.parametrize("level", ["none", "low", "medium", "high"])
@pytest.mark.parametrize("algorithm", [None, "gzip", "deflate"])
def test_tritonclient_may_compress_its_requests(algorithm, level):
    async def scenario():
        async with serving(FakeEngine(), infer_response_compression_level=level) as frontend:
            array = np.arange(SIZE, dtype=np.float32)
            tensor = client.InferInput("IN", [SIZE], "FP32").set_data_from_numpy(array)
            async with client.InferenceServerClient(frontend.address()) as connection:
                result = await connection.infer(
                    "identity", [tensor], compression_algorithm=algorithm
                )
                np.testing.assert_array_equal(result.as_numpy("IN"), array)

                async def requests():
                    yield {"model_name": "identity", "inputs": [tensor]}

                async for answer, error in connection.stream_infer(
                    requests(), compression_algorithm=algorithm
                ):
                    assert error is None
                    np.testing.assert_array_equal(answer.as_numpy("IN"), array)

    run(scenario)


async def bytes_to(port):
    """Return the bytes sent for a response of `SIZE` zeros, for a unary call and on a stream."""
    taken = []

    async def forward(reader, writer, count):
        while data := await reader.read(65536):
            taken.append(len(data) if count else 0)
            writer.write(data)
        writer.close()

    async def between(reader, writer):
        there, here = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, here, False), forward(there, writer, True))

    middle = await asyncio.start_server(between, "127.0.0.1", 0)
    async with (
        middle,
        grpc.aio.insecure_channel(f"127.0.0.1:{middle.sockets[0].getsockname()[1]}") as channel,
    ):
        await channel.unary_unary(SERVICE + "ModelInfer")(message())
        unary = sum(taken)
        stream = channel.stream_stream(SERVICE + "ModelStreamInfer")(iter([message()]))
        assert len([answer async for answer in stream]) == 1
    return unary, sum(taken) - unary


@pytest.mark.parametrize(
    ("level", "is_small"), [("none", False), ("low", True), ("medium", True), ("high", True)]
)
def test_responses_are_compressed_at_the_configured_level(level, is_small):
    async def scenario():
        async with serving(FakeEngine(), infer_response_compression_level=level) as frontend:
            port = int(frontend.address().rpartition(":")[2])
            for taken in await bytes_to(port):
                assert (taken < SIZE // 10) is is_small

    run(scenario)


@pytest.mark.parametrize("compression", ALGORITHMS)
@pytest.mark.parametrize("size", [10**6 + 1, 3 * 10**7])
def test_every_call_refuses_a_decompression_bomb(compression, size):
    async def scenario():
        async with serving(FakeEngine(), max_decompressed_size=10**6) as frontend:
            options = [("grpc.max_send_message_length", -1)]
            async with grpc.aio.insecure_channel(frontend.address(), options) as channel:
                for name in ("ModelInfer", "ServerMetadata", "RepositoryIndex"):
                    with pytest.raises(
                        grpc.RpcError, match="maximum allowed value of 1000000 bytes"
                    ) as error:
                        await channel.unary_unary(SERVICE + name)(
                            message(size), compression=compression
                        )
                    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
                call = channel.stream_stream(SERVICE + "ModelStreamInfer")
                stream = call(iter([message(size), message(10)]), compression=compression)
                answers = [ModelStreamInferResponse.FromString(answer) async for answer in stream]
                assert "maximum allowed value of 1000000 bytes" in answers[0].error_message
                assert answers[1].infer_response.id == "1"

    run(scenario)


def peak_memory():
    """Return the peak memory of this process in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def test_concurrent_decompression_bombs_use_bounded_memory():
    async def scenario():
        nested = zlib.compress(zlib.compress(bytes(10**8)))
        many = [gzip.compress(bytes(10**8))] * 40
        async with (
            serving(FakeEngine(), max_decompressed_size=10**6) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            call = channel.unary_unary(SERVICE + "ModelInfer")
            assert await call(message(10))
            before = peak_memory()
            # messages are compressed by the test, without the flag
            answers = await asyncio.gather(
                *[call(one) for one in [*many, nested]], return_exceptions=True
            )
            assert {answer.code() for answer in answers} == {grpc.StatusCode.INVALID_ARGUMENT}
            assert peak_memory() - before < 10**8, "a single decompressed message would be as large"
            assert await call(message(10))

    run(scenario)


@pytest.mark.parametrize("compression", ALGORITHMS)
def test_management_calls_may_be_compressed(compression):
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address(), compression=compression) as channel,
        ):
            answer = await channel.unary_unary(SERVICE + "ServerMetadata")(b"")
            assert ServerMetadataResponse.FromString(answer).name == "triton"
            health = health_pb2_grpc.HealthStub(channel)
            request = health_pb2.HealthCheckRequest(service="inference.GRPCInferenceService")
            assert (await health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
            names = await asyncio.to_thread(services, frontend.address(), compression)
            assert "inference.GRPCInferenceService" in names

    run(scenario)


def services(address, compression):
    with grpc.insecure_channel(address, compression=compression) as channel:
        return list(ProtoReflectionDescriptorDatabase(channel).get_services())
