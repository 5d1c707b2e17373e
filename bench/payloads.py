"""The requests that the benchmarks send, as bytes: the same for every server."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np

from tritonpy_protos import grpc_service_pb2 as pb


@dataclass(frozen=True)
class Payload:
    """One inference request: `header_length` bytes of JSON and then the tensors, and the same as a gRPC frame."""

    model: str
    body: bytes
    header_length: int
    frame: bytes
    answer: bytes  # a valid HTTP answer of the right size, for the echo server
    answer_header_length: int


def add_sub() -> Payload:
    """Two int32[1, 16] inputs, two outputs of the same size."""
    data = np.arange(16, dtype=np.int32).reshape(1, 16)
    return _payload("add_sub", {"INPUT0": data, "INPUT1": data}, {"OUTPUT0": data + data, "OUTPUT1": data - data})


def identity(megabytes: int = 16) -> Payload:
    """One FP32 tensor of `megabytes` MiB, returned as it is."""
    data = np.zeros((1, megabytes * 2**18), np.float32)
    return _payload("identity", {"INPUT0": data}, {"OUTPUT0": data})


def _payload(model: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Payload:
    header = json.dumps(
        {
            "inputs": [_tensor(name, data) for name, data in inputs.items()],
            "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in outputs],
        }
    ).encode()
    answer = json.dumps(
        {
            "model_name": model,
            "model_version": "1",
            "outputs": [_tensor(name, data) for name, data in outputs.items()],
        }
    ).encode()
    body = header + b"".join(data.tobytes() for data in inputs.values())
    full = answer + b"".join(data.tobytes() for data in outputs.values())
    return Payload(model, body, len(header), _frame(model, inputs), full, len(answer))


def _tensor(name: str, data: np.ndarray) -> dict[str, object]:
    datatype = {"int32": "INT32", "float32": "FP32"}[data.dtype.name]
    parameters = {"binary_data_size": data.nbytes}
    return {"name": name, "shape": list(data.shape), "datatype": datatype, "parameters": parameters}


def _frame(model: str, inputs: dict[str, np.ndarray]) -> bytes:
    request = pb.ModelInferRequest(model_name=model)
    for name, data in inputs.items():
        datatype = {"int32": "INT32", "float32": "FP32"}[data.dtype.name]
        request.inputs.add(name=name, datatype=datatype, shape=data.shape)
        request.raw_input_contents.append(data.tobytes())
    message = request.SerializeToString()
    return struct.pack(">BI", 0, len(message)) + message
