"""Garbage over gRPC: the server returns clear errors, frees its resources and keeps serving."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

TIMEOUT_S = 30
METHODS = tuple(
    method.name
    for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods
    if method.name != "ModelStreamInfer"
)


def whole_request() -> Any:
    """Return a valid ModelInferRequest."""
    request = service_pb2.ModelInferRequest(
        model_name="add_sub", raw_input_contents=[bytes(64), bytes(64)]
    )
    for name in ("INPUT0", "INPUT1"):
        request.inputs.add(name=name, datatype="INT32", shape=[1, 16])
    return request


def management() -> dict[str, Any]:
    """Return a message for each management call with a request body."""
    load = service_pb2.RepositoryModelLoadRequest(model_name="nowhere")
    load.parameters["config"].string_param = "{}"
    load.parameters["file:1/model.onnx"].bytes_param = b"x"
    trace = service_pb2.TraceSettingRequest(model_name="texts")
    trace.settings["trace_rate"].value.append("7")
    logs = service_pb2.LogSettingsRequest()
    logs.settings["log_format"].string_param = "default"
    return {
        "RepositoryIndex": service_pb2.RepositoryIndexRequest(repository_name="some", ready=True),
        "RepositoryModelLoad": load,
        "RepositoryModelUnload": service_pb2.RepositoryModelUnloadRequest(model_name="nowhere"),
        "ModelMetadata": service_pb2.ModelMetadataRequest(name="add_sub", version="1"),
        "ModelConfig": service_pb2.ModelConfigRequest(name="add_sub", version="1"),
        "ModelStatistics": service_pb2.ModelStatisticsRequest(name="add_sub", version="1"),
        "SystemSharedMemoryRegister": service_pb2.SystemSharedMemoryRegisterRequest(
            name="r", key="/../etc/passwd", byte_size=64
        ),
        "SystemSharedMemoryUnregister": service_pb2.SystemSharedMemoryUnregisterRequest(name="r"),
        "CudaSharedMemoryRegister": service_pb2.CudaSharedMemoryRegisterRequest(
            name="r", raw_handle=bytes(64), byte_size=64
        ),
        "TraceSetting": trace,
        "LogSettings": logs,
    }


MANAGEMENT = management()


def grpc_request(rng: random.Random) -> Any:
    """Return a ModelInferRequest that is mostly invalid."""
    request = service_pb2.ModelInferRequest(
        model_name=rng.choice(["add_sub", "add_sub", "texts", "", "no\x00where"]),
        model_version=rng.choice(["", "", "1", "x", "-1", "9" * 30]),
    )
    for name in rng.choice(
        [
            ["INPUT0", "INPUT1"],
            ["INPUT0"],
            ["INPUT0", "INPUT0"],
            ["IN"],
            ["INPUT0", "INPUT1", "INPUT2"],
            [],
        ]
    ):
        shape = rng.choice(
            [[1, 16], [1, 16], [-1, 16], [2**62, 4], [0, 16], [], [16], [2**63 - 1] * 3, [1] * 100]
        )
        given = request.inputs.add(
            name=name,
            datatype=rng.choice(["INT32", "INT32", "INT32", "WHAT", "", "BYTES", "BF16"]),
            shape=shape,
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
        request.parameters[
            rng.choice(["triton_x", "sequence_id", "timeout", "priority", "mine"])
        ].string_param = "text"
    return request


def assert_clear_rpc_error(error: grpc.RpcError) -> None:
    assert error.code() not in {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}, error
    assert error.details()
    assert "error id" not in error.details()


@pytest.fixture
def channel(target: Any) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target.grpc) as opened:
        yield opened


def test_invalid_messages_get_clear_errors(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(400):
        try:
            call(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_get_clear_errors(
    channel: grpc.Channel, rng: random.Random, method: str, damaged: Any
) -> None:
    call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}", bytes)
    for _ in range(20):
        try:
            call(
                damaged(grpc_request(rng).SerializeToString()) + rng.randbytes(20),
                timeout=TIMEOUT_S,
            )
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


def test_corrupted_messages_of_each_call_get_clear_errors(
    channel: grpc.Channel, damaged: Any
) -> None:
    for method, message in MANAGEMENT.items():
        call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}", bytes)
        for _ in range(40):
            try:
                call(damaged(message.SerializeToString()), timeout=TIMEOUT_S)
            except grpc.RpcError as error:
                assert_clear_rpc_error(error)


def test_a_truncated_message_gets_a_clear_error(channel: grpc.Channel) -> None:
    whole = whole_request().SerializeToString()
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    assert call(whole, timeout=TIMEOUT_S)
    for size in range(len(whole)):
        with pytest.raises(grpc.RpcError) as refusal:
            call(whole[:size], timeout=TIMEOUT_S)
        assert_clear_rpc_error(refusal.value)


def test_a_stream_of_garbage_ends(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer", bytes)
    for _ in range(20):
        sent = [whole_request().SerializeToString(), rng.randbytes(rng.randint(1, 200))]
        try:
            list(call(iter(sent), timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            assert_clear_rpc_error(error)


def test_unknown_metadata_is_ignored(channel: grpc.Channel) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for metadata in (
        (("triton_grpc_error", "perhaps"),),
        (("x" * 500, "y" * 2000),),
        (("strange-bin", bytes(range(256))),),
        tuple((f"many{number}", "x") for number in range(50)),
    ):
        assert call(whole_request().SerializeToString(), timeout=TIMEOUT_S, metadata=metadata)


def test_each_invalid_message_of_a_stream_gets_an_error(
    channel: grpc.Channel, rng: random.Random
) -> None:
    call = channel.stream_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        bytes,
        service_pb2.ModelStreamInferResponse.FromString,
    )
    responses = list(
        call((grpc_request(rng).SerializeToString() for _ in range(100)), timeout=TIMEOUT_S)
    )
    assert len(responses) == 100
    assert any(response.error_message for response in responses)
    assert not any("error id" in response.error_message for response in responses)


def test_cancelled_calls_leave_nothing_behind(channel: grpc.Channel, rng: random.Random) -> None:
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", bytes)
    for _ in range(100):
        call.future(grpc_request(rng).SerializeToString(), timeout=TIMEOUT_S).cancel()


def test_bytes_that_are_no_http_2_close_the_connection(target: Any, rng: random.Random) -> None:
    for _ in range(50):
        target.exchange(
            rng.choice([b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
            + rng.randbytes(rng.randint(1, 200)),
            "grpc",
        )
