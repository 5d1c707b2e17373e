"""Sends gRPC messages and returns the responses as plain data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from tests.conformance.exchange import Grpc, Stream
from tests.conformance.http_response import NO_ANSWER
from tests.conformance.tensor_data import values
from tritonpy_protos import grpc_service_pb2 as pb
from tritonpy_protos.service import METHODS, Method

CHECK = Method(
    "Check", "/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse, False, False
)
BY_NAME = {method.name: method for method in (*METHODS, CHECK)}
COMPRESSIONS = {"": None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
STREAM_PATH = BY_NAME["ModelStreamInfer"].path


def send(channel: grpc.Channel, call: Grpc) -> dict[str, Any]:
    """Return status code, status message and response of a unary call.

    A method that begins with a slash is the path of an unknown method.
    """
    if call.method.startswith("/"):
        invoke = channel.unary_unary(call.method, response_deserializer=Empty.FromString)
    else:
        method = BY_NAME[call.method]
        invoke = channel.unary_unary(method.path, response_deserializer=method.response.FromString)
    try:
        answer = invoke(
            call.message.SerializeToString(deterministic=True),
            timeout=call.deadline,
            metadata=call.metadata,
            compression=COMPRESSIONS[call.compression],
        )
    except grpc.RpcError as error:
        return _status(error)
    return {"code": "OK", "answer": readable(answer)}


def send_stream(channel: grpc.Channel, stream: Stream) -> dict[str, Any]:
    """Return the responses of each request in order, by request id, and the end of the call."""
    invoke = channel.stream_stream(
        STREAM_PATH, response_deserializer=pb.ModelStreamInferResponse.FromString
    )
    enough = threading.Event()
    call = invoke(
        _messages(stream, enough),
        timeout=stream.timeout_s,
        metadata=stream.metadata,
        compression=COMPRESSIONS[stream.compression],
    )
    responses: dict[str, list[Any]] = {}
    end: dict[str, Any] = {"code": "OK"}
    count = 0
    try:
        for answer in call:
            found = readable(answer.infer_response)
            error_field = {"error": answer.error_message} if answer.error_message else {}
            responses.setdefault(answer.infer_response.id, []).append(
                {**error_field, **({"answer": found} if found else {})}
            )
            count += 1
            if count == stream.cancel_after:
                call.cancel()
    except grpc.RpcError as error:
        end = _status(error)
    finally:
        enough.set()
    return {"answers": responses, "end": NO_ANSWER if end["code"] == "DEADLINE_EXCEEDED" else end}


def _messages(stream: Stream, enough: threading.Event) -> Iterator[bytes]:
    for message in stream.messages:
        yield message.SerializeToString(deterministic=True)
    if stream.cancel_after is not None:
        enough.wait(stream.timeout_s)


def readable(message: Message) -> dict[str, Any]:
    """Return a message as a dictionary; raw tensors are decoded into their outputs."""
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    if isinstance(message, pb.ModelInferResponse) and message.raw_output_contents:
        del found["raw_output_contents"]
        for output, raw in zip(found["outputs"], message.raw_output_contents, strict=False):
            output["raw"] = values(output.get("datatype", "UINT8"), raw)
    return found


def _status(error: grpc.RpcError) -> dict[str, Any]:
    return {"code": error.code().name, "message": error.details()}
