"""Garbage for a live server over gRPC: it answers clearly, forgets it, and serves on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

TIMEOUT_S = 30
METHODS = (
    "ModelInfer",
    "ModelMetadata",
    "ModelConfig",
    "ModelStatistics",
    "ModelReady",
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
)


def grpc_request(rng: random.Random) -> Any:
    """Return a ModelInferRequest that is wrong in most cases."""
    request = service_pb2.ModelInferRequest(
        model_name=rng.choice(["add_sub", "add_sub", "texts", "", "no\x00where"]),
        model_version=rng.choice(["", "", "1", "x", "-1", "9" * 30]),
    )
    for name in rng.choice(
        [["INPUT0", "INPUT1"], ["INPUT0"], ["INPUT0", "INPUT0"], ["IN"], ["INPUT0", "INPUT1", "INPUT2"], []]
    ):
        shape = rng.choice([[1, 16], [1, 16], [-1, 16], [2**62, 4], [0, 16], [], [16], [2**63 - 1] * 3, [1] * 100])
        given = request.inputs.add(
            name=name, datatype=rng.choice(["INT32", "INT32", "INT32", "WHAT", "", "BYTES", "BF16"]), shape=shape
        )
        if rng.random() < 0.2:
            given.contents.int_contents.extend(range(rng.choice([0, 15, 16])))
        if rng.random() < 0.1:
            given.parameters["shared_memory_region"].string_param = "no"
    for _ in range(rng.choice([len(request.inputs), len(request.inputs), 0, 5])):
        request.raw_input_contents.append(rng.randbytes(rng.choice([64, 64, 63, 0, 1000])))
    if rng.random() < 0.3:
        request.outputs.add(name=rng.choice(["OUTPUT0", "WHAT", ""])).parameters[
            "classification"
        ].int64_param = rng.choice([1, -1, 2**62])
    if rng.random() < 0.3:
        request.parameters[rng.choice(["triton_x", "sequence_id", "timeout", "priority", "mine"])].string_param = "text"
    return request


def assert_clear_rpc_error(error: grpc.RpcError) -> None:
    assert error.code() not in {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}, error
    assert error.details()
    assert "incident" not in error.details()


@pytest.fixture
def channel(target: Any) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target.grpc) as opened:
        yield opened


def test_wrong_messages_are_answered_clearly(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(400):
        try:
            call(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_are_answered_clearly(
    channel: grpc.Channel, rng: random.Random, method: str, damaged: Any
) -> None:
    call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}", bytes)
    for _ in range(20):
        try:
            call(damaged(grpc_request(rng).SerializeToString()) + rng.randbytes(20), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


def test_a_stream_of_wrong_messages_answers_each(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.stream_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer", bytes, service_pb2.ModelStreamInferResponse.FromString
    )
    answers = list(call((grpc_request(rng).SerializeToString() for _ in range(100)), timeout=TIMEOUT_S))
    assert len(answers) == 100
    assert any(answer.error_message for answer in answers)
    assert not any("incident" in answer.error_message for answer in answers)


def test_calls_that_are_cancelled_are_forgotten(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(100):
        call.future(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S).cancel()


def test_bytes_that_are_no_http_2_close_the_connection(target: Any, rng: random.Random) -> None:
    for _ in range(50):
        target.exchange(
            rng.choice([b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) + rng.randbytes(rng.randint(1, 200)), "grpc"
        )
