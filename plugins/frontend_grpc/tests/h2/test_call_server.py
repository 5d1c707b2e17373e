"""The start of calls."""

from __future__ import annotations

import asyncio

import pytest

from tritonpy import PermissionDenied, Unauthenticated
from tritonpy.auth import ApiCategory, Restriction
from tritonpy_protos import grpc_service_pb2 as pb

from ..fake_engine import RecordingEngine, run
from ..recording_authorizer import RecordingAuthorizer
from .messages import infer_request

METHODS = ("ModelInfer", "ModelStreamInfer", "ServerMetadata", "/grpc.health.v1.Health/Check")


def test_a_request_that_is_not_grpc_gets_415(serve):
    async def scenario():
        stream = serve().stream("ModelInfer", infer_request(), content_type=b"application/json")
        assert stream.status == 415
        assert stream.over.is_set()

    run(scenario)


@pytest.mark.parametrize("path", ["/a.B/C", "/", "ModelInferr", "/inference.GRPCInferenceService"])
def test_a_method_that_does_not_exist_is_not_implemented(serve, path):
    async def scenario():
        assert await serve().stream(path, b"").outcome() == (12, "Method not found!", [])

    run(scenario)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_refuses_an_invalid_head(serve, method):
    async def scenario():
        server = serve()
        assert (await server.stream(method, b"", te=None).outcome())[:2] == (
            2,
            "Missing :te header",
        )
        assert (await server.stream(method, b"", method="PUT").outcome())[:2] == (
            2,
            "Bad method header: PUT",
        )
        stream = server.stream(method, b"", grpc_encoding=b"zstd")
        assert (await stream.outcome())[0] == 12
        assert stream.headers[b"grpc-accept-encoding"] == b"identity,deflate,gzip"

    run(scenario)


@pytest.mark.parametrize("method", METHODS)
def test_a_restricted_protocol_requires_its_header(serve, method):
    groups = (ApiCategory.INFERENCE, ApiCategory.METADATA, ApiCategory.HEALTH)
    given = Restriction(groups, "admin-key", "s3cret")

    async def scenario():
        server = serve(restricted_apis=(given,))
        status, text, _ = await server.stream(
            method, ended=False
        ).outcome()  # before any message arrives
        assert status == 14
        assert (
            text == "This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'"
        )
        key = ((b"triton-grpc-protocol-admin-key", b"s3cret"),)
        assert (
            await server.stream(
                method, infer_request() if "Infer" in method else b"", metadata=key
            ).outcome()
        )[0] == 0

    run(scenario)


@pytest.mark.parametrize(
    ("refusal", "status"), [(Unauthenticated("who"), 16), (PermissionDenied("no"), 7)]
)
def test_the_authorizer_may_refuse_a_call(serve, refusal, status):
    async def scenario():
        server = serve(authorizer=RecordingAuthorizer(refusal))
        assert (await server.stream("ModelInfer", infer_request()).outcome())[:2] == (
            status,
            refusal.message,
        )
        assert (await server.stream("ServerMetadata", ended=False).outcome())[:2] == (
            status,
            refusal.message,
        )
        streamed = pb.ModelStreamInferResponse.FromString(
            (await server.stream("ModelStreamInfer", infer_request()).outcome())[2][0]
        )
        assert streamed.error_message == refusal.message

    run(scenario)


@pytest.mark.parametrize("method", METHODS[:3])
def test_the_principal_is_checked_before_the_message(serve, method):
    async def scenario():
        authorizer = RecordingAuthorizer()
        authorizer.key = "k"
        assert (await serve(authorizer=authorizer).stream(method, ended=False).outcome())[0] == 16

    run(scenario)


def test_a_request_has_its_principal_and_forwarded_headers(serve):
    async def scenario():
        authorizer, engine = RecordingAuthorizer(), RecordingEngine()
        authorizer.key = "k"
        server = serve(engine, authorizer, header_forward_pattern="^x-")
        metadata = (
            (b"x-api-key", b"k"),
            (b"x-color", b"red"),
            (b"y-other", b"z"),
            (b"x-data-bin", b"AAE"),
        )
        assert (await server.stream("ModelInfer", infer_request(), metadata=metadata).outcome())[
            0
        ] == 0
        assert (
            await server.stream("ModelStreamInfer", infer_request(), metadata=metadata).outcome()
        )[0] == 0
        for request in engine.requests:
            assert request.principal is not None
            assert dict(request.parameters) == {"x-api-key": "k", "x-color": "red"}

    run(scenario)


def test_invalid_metadata_is_refused_if_it_is_read(serve):
    async def scenario():
        bad = ((b"x-data-bin", b"AAAAA"),)
        server = serve(header_forward_pattern="^x-")
        for method in METHODS:
            assert (await server.stream(method, infer_request(), metadata=bad).outcome())[0] == 2

    run(scenario)


def test_draining_reports_not_serving(serve):
    async def scenario():
        server = serve()
        await server.call_server.drain()
        assert (await server.stream("/grpc.health.v1.Health/Check", b"").outcome())[2] == [
            b"\x08\x02"
        ]
        live = await server.stream("ServerLive", b"").outcome()
        assert pb.ServerLiveResponse.FromString(live[2][0]).live

    run(scenario)


def test_concurrent_calls_get_their_own_responses(serve):
    async def scenario():
        server = serve()
        streams = [
            server.stream(
                "ModelStreamInfer" if number % 3 else "ModelInfer",
                infer_request(request_id=str(number)),
            )
            for number in range(300)
        ]
        for number, (status, _, (message,)) in enumerate(
            await asyncio.gather(*[each.outcome() for each in streams])
        ):
            kind = pb.ModelStreamInferResponse if number % 3 else pb.ModelInferResponse
            found = kind.FromString(message)
            assert (status, (found.infer_response if number % 3 else found).id) == (0, str(number))

    run(scenario)
