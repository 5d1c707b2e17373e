"""The methods other than ModelInfer."""

from __future__ import annotations

import asyncio
import threading

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from tritonpy_frontend_grpc.management import MANAGEMENT
from tritonpy_protos import METHODS, SERVICE
from tritonpy_protos import grpc_service_pb2 as pb

from ..fake_engine import FakeEngine, eventually, run
from .messages import frame

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize(
    "method",
    [method for method in METHODS if method.name in MANAGEMENT],
    ids=lambda each: each.name,
)
def test_every_management_method_returns_its_message(serve, method):
    async def scenario():
        fields = {"name": "identity"} if "name" in method.request.DESCRIPTOR.fields_by_name else {}
        status, text, messages = (
            await serve()
            .stream(method.name, method.request(**fields).SerializeToString())
            .outcome()
        )
        assert (status, text) == (0, "")
        assert method.response.FromString(messages[0]) is not None

    run(scenario)


def test_management_errors_have_their_status_and_are_truncated(serve):
    async def scenario():
        server = serve()
        status, text, _ = await server.stream(
            "RepositoryModelLoad",
            pb.RepositoryModelLoadRequest(model_name="bad").SerializeToString(),
        ).outcome()
        assert status == 13
        assert text.startswith("failed to load 'bad', because")
        assert text.endswith(" ...")
        taken = pb.SystemSharedMemoryRegisterRequest(name="taken", key="/k", byte_size=8)
        assert (
            await server.stream("SystemSharedMemoryRegister", taken.SerializeToString()).outcome()
        )[0] == 6

    run(scenario)


def test_a_slow_readiness_check_does_not_block_other_calls(serve):
    engine, is_checking, other_finished = FakeEngine(), threading.Event(), threading.Event()

    def check_slowly(_name, _version):
        is_checking.set()
        return other_finished.wait(20)

    engine.is_model_ready = check_slowly

    async def scenario():
        server = serve(engine)
        message = pb.ModelReadyRequest(name="identity").SerializeToString()
        readiness = server.stream("ModelReady", message)
        await eventually(is_checking.is_set)
        assert (await server.stream("ServerReady", b"").outcome())[0] == 0
        other_finished.set()
        assert pb.ModelReadyResponse.FromString((await readiness.outcome())[2][0]).ready

    run(scenario)


def test_health_is_checked_and_watched(serve):
    async def scenario():
        server = serve()
        message = HealthCheckRequest(service=SERVICE).SerializeToString()
        assert (await server.stream("/grpc.health.v1.Health/Check", message).outcome())[0] == 0
        watch, seen = server.stream("/grpc.health.v1.Health/Watch", message), []
        await eventually(lambda: seen.extend(watch.messages()) or seen)
        await server.call_server.drain()
        await eventually(lambda: seen.extend(watch.messages()) or len(seen) == 2)
        assert [HealthCheckResponse.FromString(one).status for one in seen] == [
            SERVING,
            NOT_SERVING,
        ]
        await server.call_server.close()
        assert (await watch.outcome())[0] == 0

    run(scenario)


def test_a_disconnecting_watcher_ends_its_call(serve):
    async def scenario():
        server = serve()
        watch = server.stream("/grpc.health.v1.Health/Watch", b"")
        await eventually(watch.messages)
        watch.leave()
        await asyncio.wait_for(watch.task, 20)

    run(scenario)


def test_reflection_describes_every_service(serve):
    async def scenario():
        server = serve()
        stream = server.stream(
            REFLECTION, ServerReflectionRequest(list_services="").SerializeToString(), ended=False
        )
        got = []
        await eventually(lambda: got.extend(stream.messages()) or got)
        named = [
            one.name
            for one in ServerReflectionResponse.FromString(got[0]).list_services_response.service
        ]
        assert named == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
            SERVICE,
        ]
        stream.feed(
            frame(ServerReflectionRequest(file_containing_symbol=SERVICE).SerializeToString()),
            ended=True,
        )
        status, _, (message,) = await stream.outcome()
        (raw,) = ServerReflectionResponse.FromString(
            message
        ).file_descriptor_response.file_descriptor_proto[:1]
        file = FileDescriptorProto.FromString(raw)
        assert status == 0
        assert [method.name for method in file.service[0].method] == [
            method.name for method in METHODS
        ]

    run(scenario)


def test_invalid_bytes_for_a_library_service_get_an_error(serve, caplog):
    async def scenario():
        status, text, _ = (
            await serve().stream("/grpc.health.v1.Health/Check", b"\xff\xff").outcome()
        )
        assert (status, text) == (
            3,
            "unable to parse the request: its 2 bytes are not a valid message",
        )

    run(scenario)
    assert not caplog.records
