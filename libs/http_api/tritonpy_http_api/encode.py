"""Encoding of `InferResponse` and errors into HTTP headers and body.

Independent of the transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from tritonpy import InferResponse, OutputSpec, Tensor, TritonError, Unauthenticated
from tritonpy.frontend import RegionSlice
from tritonpy_http_api.compression import SUPPORTED, UnsupportedEncoding
from tritonpy_http_api.errors import error_body, retry_headers, status_of
from tritonpy_http_api.json_tensors import to_json

Headers = Sequence[tuple[bytes, bytes]]

JSON_TYPE = (b"content-type", b"application/json")
PLAIN_TYPE = (b"content-type", b"text/plain")
_BINARY_TYPE = (b"content-type", b"application/octet-stream")
# Up to this size, the parts of a body are joined: a copy is cheaper than another write.
JOIN_BELOW = 64 * 1024

_to_json_bytes = msgspec.json.encode


class HttpResponse:
    """An HTTP response.

    `parts` joined are the body, of `size` bytes; headers include `content-length`.
    """

    def __init__(
        self, status: int, headers: Headers, parts: Sequence[bytes | memoryview], size: int
    ) -> None:
        self.status = status
        self.headers = headers
        self.parts = parts
        self.size = size


def encode_infer(
    response: InferResponse, outputs: Mapping[str, OutputSpec] | None, binary: bool
) -> HttpResponse:
    """Return the HTTP response for a response with data.

    `outputs` are the requested outputs; each has a `binary` flag. `binary` applies to all others:
    a backend may send more than the client requested. Raises InvalidArgument if an output cannot be
    represented in JSON.
    """
    signature: list[tuple[str, str, tuple[int, ...], int]] = []
    arrays: list[Any] = []
    for tensor in response.outputs:
        name, data = tensor.name, tensor.data
        if type(data) is not np.ndarray or not _is_binary(name, outputs, binary):
            return _encode_mixed(response, outputs, binary)
        signature.append((name, tensor.datatype, tensor.shape, data.nbytes))
        arrays.append(data)
    if response.parameters:
        return _encode_mixed(response, outputs, binary)
    headers, head, size = _all_binary(response.model_name, response.model_version, tuple(signature))
    if response.id:
        head = b'{"id":%b,%b' % (_to_json_bytes(response.id), head[1:])
        headers = _headers(len(head), size)
    total = len(head) + size
    if total <= JOIN_BELOW:
        return HttpResponse(
            200, headers, (b"".join([head, *[array.tobytes() for array in arrays]]),), total
        )
    return HttpResponse(
        200, headers, (head, *[_buffer(array) for array in arrays if array.nbytes]), total
    )


def _is_binary(name: str, outputs: Mapping[str, OutputSpec] | None, binary: bool) -> bool:
    return binary if outputs is None or name not in outputs else outputs[name].binary


def _encode_mixed(
    response: InferResponse, outputs: Mapping[str, OutputSpec] | None, binary: bool
) -> HttpResponse:
    described: list[bytes] = []
    buffers: list[bytes | memoryview] = []
    size = 0
    for tensor in response.outputs:
        if _is_binary(tensor.name, outputs, binary):
            array = tensor.data if type(tensor.data) is np.ndarray else tensor.numpy()
            nbytes = array.nbytes
            described.append(_binary_output(tensor.name, tensor.datatype, tensor.shape, nbytes))
            if nbytes:
                buffers.append(_buffer(array))
                size += nbytes
        else:
            described.append(_json_output(tensor))
    head = _head(response, described)
    total = len(head) + size
    headers = _headers(len(head), size)
    if total <= JOIN_BELOW:
        return HttpResponse(200, headers, (b"".join((head, *buffers)),), total)
    return HttpResponse(200, headers, (head, *buffers), total)


@lru_cache(maxsize=4096)
def _all_binary(
    name: str, version: int, outputs: tuple[tuple[str, str, tuple[int, ...], int], ...]
) -> tuple[Headers, bytes, int]:
    """Return headers, JSON and data size of a response without id whose outputs are all binary."""
    size = sum([nbytes for _, _, _, nbytes in outputs])
    head = b'{%b"outputs":[%b]}' % (
        _model(name, version),
        b",".join([_binary_output(*output) for output in outputs]),
    )
    return _headers(len(head), size), head, size


@lru_cache(maxsize=4096)
def _headers(head: int, size: int) -> Headers:
    """Return the headers of a response of `head` bytes of JSON and `size` bytes of data."""
    length = (b"content-length", b"%d" % (head + size))
    if not size:
        return (JSON_TYPE, length)
    return (_BINARY_TYPE, (b"inference-header-content-length", b"%d" % head), length)


def _buffer(array: Any) -> bytes | memoryview:
    return array.tobytes() if array.nbytes <= JOIN_BELOW else _view(array)


def _head(response: InferResponse, described: list[bytes]) -> bytes:
    identity = b'"id":%b,' % _to_json_bytes(response.id) if response.id else b""
    parameters = (
        b'"parameters":%b,' % _to_json_bytes(response.parameters) if response.parameters else b""
    )
    model = _model(response.model_name, response.model_version)
    return b'{%b%b%b"outputs":[%b]}' % (identity, model, parameters, b",".join(described))


@lru_cache(maxsize=1024)
def _model(name: str, version: int) -> bytes:
    return b'"model_name":%b,"model_version":"%d",' % (_to_json_bytes(name), version)


@lru_cache(maxsize=4096)
def _binary_output(name: str, datatype: str, shape: tuple[int, ...], nbytes: int) -> bytes:
    parameters = {"binary_data_size": nbytes}
    return _to_json_bytes(
        {"name": name, "datatype": datatype, "shape": shape, "parameters": parameters}
    )


def _json_output(tensor: Tensor) -> bytes:
    if isinstance(tensor.data, RegionSlice):  # the data is in the shared memory region
        return _to_json_bytes(
            {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
        )
    return _to_json_bytes(
        {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": tensor.shape,
            "data": to_json(tensor),
        }
    )


def _view(array: Any) -> memoryview:
    # View as bytes: BF16 has no buffer format.
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def encode_error(error: TritonError, kind: tuple[bytes, bytes] = PLAIN_TYPE) -> HttpResponse:
    """Return the HTTP response for an error of an inference call.

    The body is always JSON. As in Triton, only errors found while the request is read have the
    content type JSON.
    """
    body = error_body(error.message)
    headers = [kind, (b"content-length", b"%d" % len(body))]
    if isinstance(error, UnsupportedEncoding):
        headers.append((b"accept-encoding", SUPPORTED))
    elif isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b'Bearer realm="tritonpy"'))
    else:
        headers += retry_headers(error)
    return HttpResponse(status_of(error), headers, (body,), len(body))
