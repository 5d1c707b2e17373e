"""Invalid requests: the same text and kind of error over both protocols, in Triton's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

HTTP_STATUS = {
    "INVALID_ARGUMENT": "400",
    "NOT_FOUND": "404",
    "INTERNAL": "500",
    "UNIMPLEMENTED": "501",
    "UNAVAILABLE": "503",
}
Build = Callable[[Any], dict[str, Any]]


def tensor(
    protocol: Any, name: str, shape: list[int], datatype: str = "INT32", size: int | None = None
) -> Any:
    """Return an input with `size` bytes, by default as many as an INT32 tensor of that shape has."""
    given = protocol.InferInput(name, shape, datatype)
    set_raw(given, bytes(4 * int(np.prod(shape)) if size is None else size))
    return given


def set_raw(given: Any, data: bytes) -> None:
    """Put bytes into an input without the client's own checks."""
    if isinstance(given, tritonclient.grpc.InferInput):
        given._raw_content = data
    else:
        given._raw_data = data
        given._parameters["binary_data_size"] = len(data)


def both(protocol: Any, **changed: Any) -> list[Any]:
    shape = changed.pop("shape", [1, 16])
    return [tensor(protocol, "INPUT0", shape, **changed), tensor(protocol, "INPUT1", shape)]


CASES: dict[str, tuple[Build, str, str]] = {
    "an unknown model": (
        lambda p: {"model_name": "nowhere", "inputs": both(p)},
        "INVALID_ARGUMENT", "Request for unknown model: 'nowhere' is not found",
    ),
    "an unknown version": (
        lambda p: {"model_name": "add_sub", "model_version": "7", "inputs": both(p)},
        "NOT_FOUND", "Request for unknown model: 'add_sub' version 7 is not found",
    ),
    "no inputs": (
        lambda p: {"model_name": "add_sub", "inputs": []},
        "INVALID_ARGUMENT", "expected 2 inputs but got 0 inputs for model 'add_sub'. Got input(s) [], but missing required input(s) ['INPUT0','INPUT1'].",
    ),
    "a missing input": (
        lambda p: {"model_name": "add_sub", "inputs": both(p)[:1]},
        "INVALID_ARGUMENT", "expected 2 inputs but got 1 inputs for model 'add_sub'.",
    ),
    "an extra input": (
        lambda p: {"model_name": "add_sub", "inputs": [*both(p), tensor(p, "INPUT2", [1, 16])]},
        "INVALID_ARGUMENT", "INPUT2",
    ),
    "an input with another name": (
        lambda p: {"model_name": "add_sub", "inputs": [both(p)[0], tensor(p, "WRONG", [1, 16])]},
        "INVALID_ARGUMENT", "WRONG",
    ),
    "an input twice": (
        lambda p: {"model_name": "add_sub", "inputs": [both(p)[0], both(p)[0]]},
        "INVALID_ARGUMENT", "input 'INPUT0' already exists in request",
    ),
    "another data type": (
        lambda p: {"model_name": "add_sub", "inputs": both(p, datatype="FP32")},
        "INVALID_ARGUMENT", "inference input 'INPUT0' data-type is 'FP32', but model 'add_sub' expects 'INT32'",
    ),
    "a shape that does not fit": (
        lambda p: {"model_name": "add_sub", "inputs": both(p, shape=[1, 15])},
        "INVALID_ARGUMENT", "unexpected shape for input 'INPUT0' for model 'add_sub'. Expected [-1,16], got [1,15]",
    ),
    "a batch that is too large": (
        lambda p: {"model_name": "add_sub", "inputs": both(p, shape=[65, 16])},
        "INVALID_ARGUMENT", "inference request batch-size must be <= 64 for 'add_sub'",
    ),
    "inputs of different batch sizes": (
        lambda p: {"model_name": "add_sub", "inputs": [tensor(p, "INPUT0", [1, 16]), tensor(p, "INPUT1", [2, 16])]},
        "INVALID_ARGUMENT", "INPUT1",
    ),
    "too few bytes": (
        lambda p: {"model_name": "add_sub", "inputs": both(p, size=60)},
        "INVALID_ARGUMENT", "input byte size mismatch for input 'INPUT0' for model 'add_sub'. Expected 64, got 60",
    ),
    "an unknown output": (
        lambda p: {"model_name": "add_sub", "inputs": both(p), "outputs": [p.InferRequestedOutput("WHAT")]},
        "INVALID_ARGUMENT", "unexpected inference output 'WHAT' for model 'add_sub'",
    ),
    "an output twice": (
        lambda p: {"model_name": "add_sub", "inputs": both(p), "outputs": [p.InferRequestedOutput("OUTPUT0")] * 2},
        "INVALID_ARGUMENT", "output 'OUTPUT0' already exists in request",
    ),
}  # fmt: skip


def refused(client: Any, protocol: Any, call: dict[str, Any]) -> InferenceServerException:
    with pytest.raises(InferenceServerException) as raised:
        client.infer(**call)
    return raised.value


@pytest.mark.parametrize("case", CASES)
def test_both_protocols_reject_it_with_the_same_text(
    http_client: Any, grpc_client: Any, case: str
) -> None:
    build, status, text = CASES[case]
    over_http = refused(http_client, tritonclient.http, build(tritonclient.http))
    over_grpc = refused(grpc_client, tritonclient.grpc, build(tritonclient.grpc))
    assert text in over_http.message()
    assert over_http.message() == over_grpc.message()
    assert (over_http.status(), over_grpc.status()) == (HTTP_STATUS[status], f"StatusCode.{status}")


def test_errors_begin_with_the_request_id(client: Any, protocol: Any) -> None:
    call = {"model_name": "add_sub", "inputs": both(protocol, shape=[1, 15])}
    assert refused(client, protocol, call).message().startswith("[request id: <id_unknown>] ")
    assert (
        refused(client, protocol, {**call, "request_id": "mine"})
        .message()
        .startswith("[request id: mine] ")
    )


@pytest.mark.parametrize("path", ["", "/config", "/stats"])
def test_queries_for_an_unknown_model_get_the_same_error(server: Any, path: str) -> None:
    response = server.request(f"/v2/models/nowhere{path}")
    rpc = {"": "ModelMetadata", "/config": "ModelConfig", "/stats": "ModelStatistics"}[path]
    request = tritonclient.grpc.service_pb2.ModelMetadataRequest(name="nowhere").SerializeToString()
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"/inference.GRPCInferenceService/{rpc}")
        with pytest.raises(grpc.RpcError) as raised:
            call(request, timeout=60)
    assert response.status == int(HTTP_STATUS[raised.value.code().name])
    assert response.json()["error"] == raised.value.details()


def test_a_decoupled_model_is_rejected_by_unary_calls(client: Any, protocol: Any) -> None:
    error = refused(
        client, protocol, {"model_name": "repeat", "inputs": [tensor(protocol, "IN", [1, 1])]}
    )
    assert "doesn't support models with decoupled transaction policy" in error.message()
    assert error.status() in {"501", "StatusCode.UNIMPLEMENTED"}
