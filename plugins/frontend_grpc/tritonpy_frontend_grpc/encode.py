"""Encoding of `InferResponse` as ModelInferResponse or ModelStreamInferResponse.

Independent of the transport. Protobuf allows concatenating messages that each contain some fields.
Parts that repeat between responses are cached in serialized form; tensor data is copied once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from tritonpy import Internal, ParameterValue, Tensor
from tritonpy.frontend import RegionSlice
from tritonpy_ipc import BlockRow, Rows, TensorSignature
from tritonpy_protos.grpc_service_pb2 import (
    InferParameter,
    ModelInferResponse,
    ModelStreamInferResponse,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from tritonpy import InferResponse

    Bytes = npt.NDArray[np.uint8]

# Tags (field number and wire type) of fields that are written by hand.
_RAW_OUTPUT = bytes([ModelInferResponse.RAW_OUTPUT_CONTENTS_FIELD_NUMBER << 3 | 2])
_MAX_MESSAGE_BYTES = 2**31 - 1  # bytes of the largest message that protobuf reads
# Bytes of a row up to which the rows of a batch are encoded together, at the cost of a copy.
_SHORT = 4096
_NOTHING = np.empty(0, np.uint8)
_INFER_RESPONSE = bytes([ModelStreamInferResponse.INFER_RESPONSE_FIELD_NUMBER << 3 | 2])


def _final_flag(final: bool) -> bytes:
    flag = {"triton_final_response": InferParameter(bool_param=final)}
    return ModelInferResponse(parameters=flag).SerializeToString()


_FINAL_FLAG = {True: _final_flag(True), False: _final_flag(False)}


def encode_response(response: InferResponse) -> bytes:
    """Return the ModelInferResponse of a response without error.

    All data is raw, with one entry per output; the entry of an output in shared memory is empty.
    """
    outputs = response.outputs
    if (
        type(outputs) is BlockRow and not response.id and not response.parameters
    ):  # the usual case for batches
        rows = outputs.block
        if rows.signature.nbytes <= _SHORT:
            message: bytes = rows.derived(_messages, response.model_name, response.model_version)[
                outputs.position
            ]
            return message
    return _joined(_parts(response, b""))


def encode_stream_response(response: InferResponse) -> bytes:
    """Return the ModelStreamInferResponse of a response without error, with the final flag."""
    parts = _parts(response, _FINAL_FLAG[response.final])
    size = sum([len(part) if isinstance(part, bytes) else part.nbytes for part in parts])
    return _joined([_INFER_RESPONSE, _varint(size), *parts])


def encode_refusal(text: str, request_id: str) -> bytes:
    """Return the ModelStreamInferResponse for a refused request."""
    return _stream_error(text, ModelInferResponse(id=request_id))


def encode_empty_final(request_id: str, model: str, version: str) -> bytes:
    """Return the ModelStreamInferResponse of an empty final response."""
    return ModelStreamInferResponse(
        infer_response=_final_response(request_id, model, version, True)
    ).SerializeToString()


def encode_failure(text: str, final: bool, request_id: str, model: str, version: str) -> bytes:
    """Return the ModelStreamInferResponse of an error.

    Model and version are as the client sent them.
    """
    return _stream_error(text, _final_response(request_id, model, version, final))


def _joined(parts: list[Any]) -> bytes:
    message = b"".join(parts)
    if len(message) > _MAX_MESSAGE_BYTES:
        raise Internal(
            f"the response has {len(message)} bytes, and gRPC carries {_MAX_MESSAGE_BYTES} at "
            "the most"
        )
    return message


def _stream_error(text: str, about: ModelInferResponse) -> bytes:
    return ModelStreamInferResponse(error_message=text, infer_response=about).SerializeToString()


def _final_response(request_id: str, model: str, version: str, final: bool) -> ModelInferResponse:
    flag = {"triton_final_response": InferParameter(bool_param=final)}
    return ModelInferResponse(
        id=request_id, model_name=model, model_version=version, parameters=flag
    )


def _parts(response: InferResponse, flag: bytes) -> list[Any]:
    parts: list[Any] = [flag] if flag else []
    if response.id:
        parts.append(ModelInferResponse(id=response.id).SerializeToString())
    if response.parameters:
        parts.append(_parameters(response.parameters))
    outputs = response.outputs
    if type(outputs) is BlockRow and outputs.block.signature.nbytes <= _SHORT:
        return [
            *parts,
            outputs.block.derived(_messages, response.model_name, response.model_version)[
                outputs.position
            ],
        ]
    parts.append(_model(response.model_name, response.model_version))
    raws: list[Any] = []
    for tensor in outputs:
        parts.append(_output(tensor.name, tensor.datatype, tensor.shape))
        data = tensor.data if isinstance(tensor.data, np.ndarray) else _on_host(tensor)
        raws += (_RAW_OUTPUT, _varint(data.nbytes), data)
    return parts + raws


def _messages(rows: Rows, model: str, version: int) -> list[bytes]:
    """Return the messages of all rows, whose outputs differ only in their data."""
    pieces: list[Iterable[bytes]] = [repeat(_head(rows.signature, model, version), rows.count)]
    for column, array in zip(rows.signature.columns, rows.arrays(0, rows.count), strict=True):
        data, nbytes = array.tobytes(), column.nbytes or 0
        pieces.append(repeat(_RAW_OUTPUT + _varint(nbytes)))
        if nbytes:
            pieces.append([data[start : start + nbytes] for start in range(0, len(data), nbytes)])
    return [*map(b"".join, zip(*pieces, strict=False))]


@lru_cache(maxsize=1024)
def _head(signature: TensorSignature, model: str, version: int) -> bytes:
    return b"".join(
        [
            _model(model, version),
            *[_output(each.name, each.datatype, each.shape) for each in signature.columns],
        ]
    )


@lru_cache(maxsize=1024)
def _model(name: str, version: int) -> bytes:
    return ModelInferResponse(model_name=name, model_version=str(version)).SerializeToString()


@lru_cache(maxsize=4096)
def _output(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    output = ModelInferResponse.InferOutputTensor(name=name, datatype=datatype, shape=shape)
    return ModelInferResponse(outputs=[output]).SerializeToString()


@lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """Return a protobuf varint: seven bits per byte, least significant first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _on_host(tensor: Tensor) -> np.ndarray[Any, Any]:
    if isinstance(tensor.data, RegionSlice):  # the data is in the shared memory region
        return _NOTHING
    return np.ascontiguousarray(tensor.numpy())


def _parameters(parameters: Mapping[str, ParameterValue]) -> bytes:
    message = ModelInferResponse()
    for key, value in parameters.items():
        parameter = message.parameters[key]
        if isinstance(value, bool):
            parameter.bool_param = value
        elif isinstance(value, int):
            parameter.int64_param = _int64(key, value)
        elif isinstance(value, float):
            parameter.double_param = value
        else:
            parameter.string_param = value
    return message.SerializeToString()


def _int64(key: str, value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Internal(
            f"response parameter '{key}' is {value}, which does not fit 64 bits: use a string"
        )
    return value
