from __future__ import annotations

import asyncio
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client_module
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tritonclient.utils import InferenceServerException

from tritonpy import PermissionDenied
from tritonpy.auth import ApiCategory, Restriction, Verb
from tritonpy_protos import METHODS, SERVICE
from tritonpy_protos import grpc_service_pb2 as pb

from .fake_engine import RecordingEngine, run, serving
from .recording_authorizer import RecordingAuthorizer

KEY = (("x-api-key", "k"),)
ALONE = ("identity",)


class SingleModelAuthorizer(RecordingAuthorizer):
    """Allows only inference with the model `identity`."""

    def admit(self, headers, verb, model=""):
        principal = super().admit(headers, verb, model)
        if (verb, model) != (Verb.INFER, "identity"):
            raise PermissionDenied(f"no right to {verb.value} model '{model}'")
        return principal


@pytest.fixture
def engine():
    return RecordingEngine()


@pytest.fixture
def authorizer():
    authorizer = RecordingAuthorizer()
    authorizer.key = "k"
    return authorizer


def with_channel(use, engine, authorizer=None, **options):
    """Run `use(channel)` in a thread against a running server."""

    def in_thread(address):
        with grpc.insecure_channel(address) as channel:
            use(channel)

    async def scenario():
        async with serving(engine, authorizer, **options) as frontend:
            await asyncio.to_thread(in_thread, frontend.address())

    run(scenario)


def message(model="identity", identity=""):
    request = pb.ModelInferRequest(model_name=model, id=identity)
    request.inputs.add(name="X", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([7], np.int32).tobytes())
    return request


def call(channel, name, sent=None, metadata=()):
    method = next(one for one in METHODS if one.name == name)
    invoke = channel.unary_unary(
        method.path, method.request.SerializeToString, method.response.FromString
    )
    return invoke(sent or method.request(), metadata=metadata, timeout=20)


def stream(channel, messages, metadata=()):
    path = f"/{SERVICE}/ModelStreamInfer"
    invoke = channel.stream_stream(
        path, pb.ModelInferRequest.SerializeToString, pb.ModelStreamInferResponse.FromString
    )
    return list(invoke(iter(messages), metadata=metadata, timeout=20))


def refused(code, use, *arguments):
    with pytest.raises(grpc.RpcError) as caught:
        use(*arguments)
    assert caught.value.code() is code, caught.value
    return caught.value.details()


def test_an_authorized_inference_has_its_principal(engine, authorizer):
    with_channel(lambda channel: call(channel, "ModelInfer", message(), KEY), engine, authorizer)
    assert [request.principal for request in engine.requests] == [authorizer.principal]


@pytest.mark.parametrize(
    "metadata", [(), (("x-api-key", "wrong"),), (*KEY, *KEY), (("x-api-key-bin", b"k"),)]
)
def test_every_method_refuses_an_unknown_principal(engine, authorizer, metadata):
    authorizer.public_endpoints = ()

    def use(channel):
        for method in METHODS:
            if method.name == "ModelStreamInfer":
                refused(grpc.StatusCode.UNAUTHENTICATED, stream, channel, [message()], metadata)
            else:
                refused(grpc.StatusCode.UNAUTHENTICATED, call, channel, method.name, None, metadata)

    with_channel(use, engine, authorizer)
    assert engine.requests == engine.calls == []


def test_health_and_reflection_are_guarded_too(engine, authorizer):
    def use(channel):
        health, reflection = (
            health_pb2_grpc.HealthStub(channel),
            reflection_pb2_grpc.ServerReflectionStub(channel),
        )
        reflection_request = [reflection_pb2.ServerReflectionRequest(list_services="")]
        request = health_pb2.HealthCheckRequest()
        health.Check(request, timeout=20)
        refused(
            grpc.StatusCode.UNAUTHENTICATED,
            lambda: list(reflection.ServerReflectionInfo(iter(reflection_request), timeout=20)),
        )
        assert list(
            reflection.ServerReflectionInfo(iter(reflection_request), timeout=20, metadata=KEY)
        )
        authorizer.public_endpoints = ()
        refused(grpc.StatusCode.UNAUTHENTICATED, lambda: health.Check(request, timeout=20))
        refused(grpc.StatusCode.UNAUTHENTICATED, lambda: list(health.Watch(request, timeout=20)))
        assert next(iter(health.Watch(request, timeout=20, metadata=KEY))).status == 1

    with_channel(use, engine, authorizer)


def test_a_principal_without_the_right_is_refused_for_any_model(engine):
    authorizer = SingleModelAuthorizer()

    def use(channel):
        call(channel, "ModelInfer", message())
        for model in ("later", "nowhere", "IDENTITY", "identity\0", "../identity", "identity "):
            text = refused(
                grpc.StatusCode.PERMISSION_DENIED, call, channel, "ModelInfer", message(model)
            )
            assert text == f"no right to infer model '{model}'"
        for name in (
            "ModelConfig",
            "ModelStatistics",
            "ModelMetadata",
            "RepositoryIndex",
            "RepositoryModelLoad",
        ):
            refused(grpc.StatusCode.PERMISSION_DENIED, call, channel, name)

    with_channel(use, engine, authorizer)
    assert [request.model_name for request in engine.requests] == ["identity"]
    assert engine.calls == []


def test_each_request_of_a_stream_is_authorized(engine):
    answers = []

    def use(channel):
        answers.extend(
            stream(channel, [message(identity="1"), message("later", "2"), message(identity="3")])
        )

    with_channel(use, engine, SingleModelAuthorizer())
    responses = [(answer.error_message, answer.infer_response.id) for answer in answers]
    assert responses == [("", "1"), ("no right to infer model 'later'", "2"), ("", "3")]
    assert [request.principal.name for request in engine.requests] == ["anna", "anna"]


def test_requests_of_a_stream_are_refused_after_credentials_expire(engine, authorizer):
    """A key is removed, or a token expires, while the stream is open."""
    go_on = threading.Event()

    def messages():
        yield message(identity="1")
        assert go_on.wait(20)
        yield message(identity="2")

    def use(channel):
        path = f"/{SERVICE}/ModelStreamInfer"
        invoke = channel.stream_stream(
            path, pb.ModelInferRequest.SerializeToString, pb.ModelStreamInferResponse.FromString
        )
        answers = iter(invoke(messages(), metadata=KEY, timeout=20))
        assert next(answers).error_message == ""
        authorizer.key = "another"
        go_on.set()
        assert next(answers).error_message == "credentials are missing or unknown"

    with_channel(use, engine, authorizer)
    assert len(engine.requests) == 1


def test_an_unknown_method_is_unimplemented_for_any_principal(engine, authorizer):
    def use(channel):
        invoke = channel.unary_unary("/other.Service/Method")
        refused(grpc.StatusCode.UNIMPLEMENTED, lambda: invoke(b"", timeout=20))

    with_channel(use, engine, authorizer)


def test_restricted_protocols(engine):
    restricted = (Restriction((ApiCategory.HEALTH, ApiCategory.INFERENCE), "key", "v"),)
    header = (("triton-grpc-protocol-key", "v"),)
    text = "This protocol is restricted, expecting header 'triton-grpc-protocol-key'"

    def use(channel):
        health = health_pb2_grpc.HealthStub(channel)
        for ask in (
            lambda: call(channel, "ServerLive"),
            lambda: call(channel, "ModelInfer", message()),
            lambda: stream(channel, [message()]),
            lambda: health.Check(health_pb2.HealthCheckRequest(), timeout=20),
        ):
            assert refused(grpc.StatusCode.UNAVAILABLE, ask) == text
        call(channel, "ServerLive", None, header)
        call(channel, "ModelInfer", message(), header)
        assert len(stream(channel, [message()], header)) == 1
        call(channel, "ServerMetadata")

    with_channel(use, engine, restricted_apis=restricted)


def test_metadata_is_forwarded(engine):
    def use(channel):
        call(channel, "ModelInfer", message(), (("x-a", "1"), ("x-b-bin", b"\xff"), ("y", "2")))
        stream(channel, [message(), message()], (("x-a", "3"),))
        text = refused(
            grpc.StatusCode.INVALID_ARGUMENT,
            call,
            channel,
            "ModelInfer",
            message(),
            (("x-timeout", "1"), ("timeout", "1")),
        )
        assert text == "Header 'timeout' is reserved for Triton usage and cannot be forwarded."

    with_channel(use, engine, header_forward_pattern="^X-|^timeout")
    assert [request.parameters for request in engine.requests] == [
        {"x-a": "1"},
        {"x-a": "3"},
        {"x-a": "3"},
    ]


def test_tritonclient_headers_authenticate(engine, authorizer):
    def in_thread(address):
        with client_module.InferenceServerClient(address) as client:
            headers = {"authorization": "Bearer x", "x-api-key": "k"}
            assert client.get_server_metadata(headers=headers).name == "triton"
            with pytest.raises(InferenceServerException, match="credentials are missing"):
                client.get_server_metadata()

    async def scenario():
        async with serving(engine, authorizer) as frontend:
            await asyncio.to_thread(in_thread, frontend.address())

    run(scenario)
