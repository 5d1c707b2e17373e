from __future__ import annotations

import logging

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tritonpy import Unauthenticated
from tritonpy.auth import ApiCategory, Restriction
from tritonpy_protos import METHODS, SERVICE
from tritonpy_protos import grpc_service_pb2 as pb

from .fake_engine import FakeEngine, eventually, run, serving
from .recording_authorizer import RecordingAuthorizer

LOG = "tritonpy.grpc"
OWN = f"/{SERVICE}/"


@pytest.fixture
def logged_lines(caplog):
    """Return a function that runs `use(channel)` against a server and returns `count` lines with models."""
    caplog.set_level(logging.DEBUG, LOG)

    def collect(use, count, authorizer=None, **options):
        async def scenario():
            async with serving(FakeEngine(), authorizer, **options) as frontend:
                async with grpc.aio.insecure_channel(frontend.address()) as channel:
                    await use(channel)
                await eventually(lambda: len(caplog.records) >= count)

        run(scenario)
        return [(record.message, getattr(record, "model", None)) for record in caplog.records]

    return collect


def message(model="identity"):
    request = pb.ModelInferRequest(model_name=model, id="s3cret")
    request.inputs.add(name="X", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([7], np.int32).tobytes())
    return request


async def call(channel, name, sent=None, **options):
    """Call a method with a message or bytes; return the status."""
    raw = (
        sent
        if isinstance(sent, bytes)
        else (
            sent or next(one for one in METHODS if one.name == name).request()
        ).SerializeToString()
    )
    try:
        metadata = (("authorization", "Bearer s3cret"),)
        await channel.unary_unary(OWN + name)(raw, metadata=metadata, timeout=20, **options)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_an_inference_is_logged_with_model_and_status(logged_lines):
    async def use(channel):
        await call(channel, "ModelInfer", message())
        await call(channel, "ModelInfer", message("unknown"))
        await call(channel, "ModelInfer", message(), compression=grpc.Compression.Gzip)
        await call(channel, "ModelInfer", b"\xff no message")

    assert logged_lines(use, 4) == [
        (f"{OWN}ModelInfer: OK", "identity"),
        (f"{OWN}ModelInfer: INVALID_ARGUMENT", "unknown"),
        (f"{OWN}ModelInfer: OK", "identity"),
        (f"{OWN}ModelInfer: INVALID_ARGUMENT", None),
    ]


def test_management_health_and_reflection_calls_are_logged(logged_lines):
    async def use(channel):
        await call(channel, "ServerMetadata")
        await call(channel, "ModelMetadata", pb.ModelMetadataRequest(name="identity"))
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        reflection_request = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        assert [answer async for answer in stub.ServerReflectionInfo(iter([reflection_request]))]

    assert logged_lines(use, 4) == [
        (f"{OWN}ServerMetadata: OK", None),
        (f"{OWN}ModelMetadata: OK", "identity"),
        ("/grpc.health.v1.Health/Check: OK", None),
        ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo: OK", None),
    ]


def test_a_stream_is_logged_once_at_its_end(logged_lines, caplog):
    async def use(channel):
        stream = channel.stream_stream(f"{OWN}ModelStreamInfer")()
        for _ in range(3):
            await stream.write(message().SerializeToString())
            await stream.read()
        assert caplog.messages == []
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF

    assert logged_lines(use, 1) == [(f"{OWN}ModelStreamInfer: OK", None)]


def test_an_abandoned_call_is_logged_as_cancelled(logged_lines):
    async def use(channel):
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        await watch.read()
        watch.cancel()

    assert logged_lines(use, 1) == [("/grpc.health.v1.Health/Watch: CANCELLED", None)]


def test_refused_calls_are_logged(logged_lines):
    async def use(channel):
        await call(channel, "ModelInfer", message())
        await call(channel, "ServerMetadata")

    assert logged_lines(use, 2, RecordingAuthorizer(Unauthenticated("who"))) == [
        (f"{OWN}ModelInfer: UNAUTHENTICATED", "identity"),
        (f"{OWN}ServerMetadata: UNAUTHENTICATED", None),
    ]


def test_the_level_may_change_at_any_time(logged_lines, caplog):
    async def use(channel):
        for level, count in ((logging.INFO, 0), (logging.DEBUG, 1), (logging.INFO, 1)):
            logging.getLogger(LOG).setLevel(level)
            await call(channel, "ModelInfer", message())
            await eventually(
                lambda count=count: len(caplog.records) >= count
            )  # a line may be logged after its response

    assert logged_lines(use, 1) == [(f"{OWN}ModelInfer: OK", "identity")]


def test_a_refusal_of_a_restricted_protocol_is_counted(caplog):
    given = Restriction((ApiCategory.METADATA, ApiCategory.INFERENCE), "admin-key", "s3cret")

    async def scenario():
        async with serving(FakeEngine(), restricted_apis=(given,)) as frontend:
            async with grpc.aio.insecure_channel(frontend.address()) as channel:
                for name in ("ModelInfer", "ServerMetadata"):
                    assert await call(channel, name) is grpc.StatusCode.UNAVAILABLE
                await call(channel, "ServerLive")
            (family,) = frontend.context.metrics._registry.snapshot()
            counted = {one.labels["api"]: one.value for one in family.metrics if one.value}
            assert counted == {"metadata": 1, "inference": 1}

    run(scenario)
    assert [line.partition(" to the ")[0] for line in caplog.messages] == ["refused: grpc call"] * 2
