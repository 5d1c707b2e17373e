"""An inference as an HTTP request (JSON or binary tensors), a gRPC call, or a stream message."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.conformance.exchange import WAIT_S, Exchange, Grpc, Http, Stream
from tritonpy_protos import grpc_service_pb2 as pb

NUMPY = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2", "INT32": "<i4",
    "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "BF16": "<u2",
}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """An input tensor in row-major order; BYTES as bytes or text, BF16 as 16-bit integers."""

    datatype: str
    values: tuple[Any, ...]
    shape: tuple[int, ...]

    def wire(self) -> bytes:
        """Return the elements in binary form."""
        if self.datatype == "BYTES":
            parts = [value.encode() if isinstance(value, str) else value for value in self.values]
            return b"".join(struct.pack("<I", len(part)) + part for part in parts)
        return np.array(self.values, NUMPY[self.datatype]).tobytes()


def given(datatype: str, *values: Any, shape: tuple[int, ...] | None = None) -> Given:
    """Return a tensor; the default shape has one dimension."""
    return Given(datatype, values, (len(values),) if shape is None else shape)


def text(value: Any) -> Given:
    """Return one BYTES element; a value that is not text is written as JSON."""
    return given("BYTES", value if isinstance(value, str) else json.dumps(value))


@dataclass(frozen=True)
class Inference:
    """The model, inputs and options of an inference."""

    model: str
    inputs: Mapping[str, Given]
    outputs: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    version: str = ""
    timeout_s: float = WAIT_S

    @property
    def path(self) -> str:
        version = f"/versions/{self.version}" if self.version else ""
        return f"/v2/models/{self.model}{version}/infer"

    def json(self) -> Http:
        """Return the HTTP request with JSON tensors."""
        inputs = [
            {**_described(name, tensor), "data": _plain(tensor)}
            for name, tensor in self.inputs.items()
        ]
        return Http(self.path, json.dumps(self._head(inputs)).encode(), timeout_s=self.timeout_s)

    def binary(self) -> Http:
        """Return the HTTP request with binary tensors in both directions."""
        data = {name: tensor.wire() for name, tensor in self.inputs.items()}
        inputs = [
            {**_described(name, tensor), "parameters": {"binary_data_size": len(data[name])}}
            for name, tensor in self.inputs.items()
        ]
        head = json.dumps(self._head(inputs, binary_data_output=True)).encode()
        headers = (("Inference-Header-Content-Length", str(len(head))),)
        return Http(
            self.path, head + b"".join(data.values()), headers=headers, timeout_s=self.timeout_s
        )

    def _head(self, inputs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        head: dict[str, Any] = {"id": self.id} if self.id else {}
        if self.parameters or more:
            head["parameters"] = {**self.parameters, **more}
        head["inputs"] = inputs
        if self.outputs:
            head["outputs"] = [
                {"name": name, **({"parameters": {"binary_data": True}} if more else {})}
                for name in self.outputs
            ]
        return head

    def message(self) -> pb.ModelInferRequest:
        """Return the gRPC message with raw tensors."""
        request = pb.ModelInferRequest(
            model_name=self.model, model_version=self.version, id=self.id
        )
        for name, tensor in self.inputs.items():
            request.inputs.add(name=name, datatype=tensor.datatype, shape=tensor.shape)
            request.raw_input_contents.append(tensor.wire())
        for name in self.outputs:
            request.outputs.add(name=name)
        for name, value in self.parameters.items():
            setattr(request.parameters[name], _kind(value), value)
        return request

    def grpc(self) -> Grpc:
        """Return the unary call."""
        return Grpc("ModelInfer", self.message(), self.timeout_s)

    def named(self, **changes: Any) -> Inference:
        """Return a copy with other fields."""
        return dataclasses.replace(self, **changes)


def streamed(*inferences: Inference, cancel_after: int | None = None) -> Stream:
    """Return one stream of these inferences, with the longest of their timeouts."""
    return Stream(
        tuple(one.message() for one in inferences),
        cancel_after,
        max(one.timeout_s for one in inferences),
    )


def both(name: str, inference: Inference, counted: bool = True) -> list[Exchange]:
    """Return an exchange over binary HTTP and one over gRPC; model statistics are compared."""
    statistics = {inference.model: 1} if counted else {}
    return [
        Exchange(f"{name}/http", (inference.binary(),), statistics),
        Exchange(f"{name}/grpc", (inference.grpc(),), statistics),
    ]


def _described(name: str, tensor: Given) -> dict[str, Any]:
    return {"name": name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _plain(tensor: Given) -> list[Any]:
    return [value.decode() if isinstance(value, bytes) else value for value in tensor.values]


def _kind(value: Any) -> str:
    kinds = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
    return kinds[type(value)]
