"""Requests of the benchmarks as bytes, equal for every server."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np

from tritonpy import encode_strings
from tritonpy.config import datatype_of
from tritonpy_protos import grpc_service_pb2 as pb


@dataclass(frozen=True)
class Payload:
    """One request: an HTTP body (`header_length` bytes of JSON, then tensors), a gRPC frame."""

    model: str
    body: bytes
    header_length: int
    frame: bytes
    response: bytes  # a valid HTTP response of the correct size, for the echo server
    response_header_length: int


def add_sub(model: str = "add_sub") -> Payload:
    """Return a request with two int32[1, 16] inputs and two outputs of the same size."""
    data = np.arange(16, dtype=np.int32).reshape(1, 16)
    return payload(
        model, {"INPUT0": data, "INPUT1": data}, {"OUTPUT0": data + data, "OUTPUT1": data - data}
    )


def identity(megabytes: int = 16) -> Payload:
    """Return a request with one FP32 tensor of `megabytes` MiB for an identity model."""
    data = np.zeros((1, megabytes * 2**18), np.float32)
    return payload("identity", {"INPUT0": data}, {"OUTPUT0": data})


STRINGS = 10_000


def strings(count: int = STRINGS) -> Payload:
    """Return a request with `count` words of 1 to 24 letters to be returned in uppercase."""
    words = [b"abcdefghijklmnopqrstuvwx"[: 1 + number * 7 % 24] for number in range(count)]
    return payload(
        "strings", {"INPUT0": _words(words)}, {"OUTPUT0": _words([word.upper() for word in words])}
    )


def _words(words: list[bytes]) -> np.ndarray:
    array = np.empty((1, len(words)), np.object_)
    array[0] = words
    return array


def _bytes(data: np.ndarray) -> bytes:
    return (
        encode_strings(data.ravel().tolist()).tobytes()
        if data.dtype == np.object_
        else data.tobytes()
    )


def payload(model: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Payload:
    """Return a request to `model` for all `outputs`, sized like the correct response."""
    header = json.dumps(
        {
            "inputs": [_tensor(name, data) for name, data in inputs.items()],
            "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in outputs],
        }
    ).encode()
    response = json.dumps(
        {
            "model_name": model,
            "model_version": "1",
            "outputs": [_tensor(name, data) for name, data in outputs.items()],
        }
    ).encode()
    body = header + b"".join(_bytes(data) for data in inputs.values())
    full = response + b"".join(_bytes(data) for data in outputs.values())
    return Payload(model, body, len(header), _frame(model, inputs), full, len(response))


def _tensor(name: str, data: np.ndarray) -> dict[str, object]:
    datatype = datatype_of(data.dtype)
    parameters = {"binary_data_size": len(_bytes(data))}
    return {"name": name, "shape": list(data.shape), "datatype": datatype, "parameters": parameters}


def _frame(model: str, inputs: dict[str, np.ndarray]) -> bytes:
    request = pb.ModelInferRequest(model_name=model)
    for name, data in inputs.items():
        datatype = datatype_of(data.dtype)
        request.inputs.add(name=name, datatype=datatype, shape=data.shape)
        request.raw_input_contents.append(_bytes(data))
    return _framed(request)


def _framed(request: pb.ModelInferRequest) -> bytes:
    message = request.SerializeToString()
    return struct.pack(">BI", 0, len(message)) + message


REGION = "bench"


def identity_in_region(megabytes: int = 16) -> Payload:
    """Return a request to `identity` with its input and then its output in `REGION`."""
    size = megabytes * 2**20
    regions = [
        {
            "shared_memory_region": REGION,
            "shared_memory_byte_size": size,
            "shared_memory_offset": offset,
        }
        for offset in (0, size)
    ]
    tensor = {
        "name": "INPUT0",
        "datatype": "FP32",
        "shape": [1, size // 4],
        "parameters": regions[0],
    }
    header = json.dumps(
        {"inputs": [tensor], "outputs": [{"name": "OUTPUT0", "parameters": regions[1]}]}
    ).encode()
    request = pb.ModelInferRequest(model_name="identity")
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, size // 4])
    request.outputs.add(name="OUTPUT0")
    for message, parameters in ((request.inputs[0], regions[0]), (request.outputs[0], regions[1])):
        for key, value in parameters.items():
            if isinstance(value, str):
                message.parameters[key].string_param = value
            else:
                message.parameters[key].int64_param = value
    return Payload("identity", header, len(header), _framed(request), b"", 0)
