"""gRPC requests as bytes, each with gRPC's prefix of five bytes.

Concatenated protobuf messages merge when parsed. The fields that differ between requests are
therefore serialized separately and appended to the constant ones.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from typing import Any

from tritonpy_load_generator.inputs.corpus import Corpus
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.metadata import TargetDescription
from tritonpy_load_generator.wire.http_messages import region_parameters
from tritonpy_load_generator.wire.regions import ClientRegions
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

_PREFIX = struct.Struct(">BI")  # compressed flag and length in bytes
PREFIX_BYTES = _PREFIX.size
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


class GrpcMessages:
    """Cached requests: one per step, and per slot if outputs are in shared memory."""

    def __init__(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        regions: ClientRegions | None,
    ) -> None:
        self._model = target.model
        self._corpus = corpus
        self._regions = regions
        self._parameters: dict[str, Any] = dict(options.request_parameter)
        if target.model.decoupled:
            self._parameters["triton_enable_empty_final_response"] = True
        self._compress = _COMPRESS.get(options.grpc_compression_algorithm)
        self._cache: dict[tuple[int, int], bytes] = {}
        self._framed_cache: dict[tuple[int, int], bytes] = {}

    def message_for(self, job: Job, slot: int, request_id: str = "") -> bytes:
        """Return the request of a job sent in `slot`, with gRPC's prefix."""
        key = (job.step, 0 if self._regions is None else slot)
        if not (request_id or job.sequence):
            framed = self._framed_cache.get(key)
            if framed is None:
                framed = self._framed_cache[key] = self._frame(
                    self._make(job.step, slot).SerializeToString()
                )
            return framed
        fixed = self._cache.get(key)
        if fixed is None:
            fixed = self._cache[key] = self._make(job.step, slot).SerializeToString()
        more = ModelInferRequest(id=request_id)
        if job.sequence:
            more.parameters["sequence_id"].int64_param = job.sequence
            more.parameters["sequence_start"].bool_param = job.start
            more.parameters["sequence_end"].bool_param = job.end
        return self._frame(fixed, more.SerializeToString())

    def _frame(self, *parts: bytes) -> bytes:
        if self._compress is None:
            return b"".join((_PREFIX.pack(0, sum(map(len, parts))), *parts))
        packed = self._compress(b"".join(parts))
        return _PREFIX.pack(1, len(packed)) + packed

    def _make(self, step: int, slot: int) -> ModelInferRequest:
        request = ModelInferRequest(model_name=self._model.name, model_version=self._model.version)
        for name, value in self._parameters.items():
            _set(request.parameters[name], value)
        for number, tensor in enumerate(self._corpus.steps[step]):
            request_input = request.inputs.add(
                name=tensor.name, datatype=tensor.datatype, shape=tensor.shape
            )
            if self._regions is None:
                request.raw_input_contents.append(tensor.content)
                continue
            for name, value in region_parameters(self._regions.inputs[step][number]).items():
                _set(request_input.parameters[name], value)
        if self._regions is not None:
            for number, output in enumerate(self._model.outputs):
                request_output = request.outputs.add(name=output.name)
                for name, value in region_parameters(self._regions.output(slot, number)).items():
                    _set(request_output.parameters[name], value)
        return request


def unframe(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete messages, decompressed, and the remaining bytes. Raises zlib.error."""
    messages, at = [], 0
    while len(data) - at >= PREFIX_BYTES:
        compressed, size = _PREFIX.unpack_from(data, at)
        end = at + PREFIX_BYTES + size
        if end > len(data):
            break
        message = data[at + PREFIX_BYTES : end]
        messages.append(zlib.decompress(message, _GZIP_OR_ZLIB) if compressed else message)
        at = end
    return messages, data[at:]


def _set(parameter: Any, value: str | float | bool) -> None:
    kind = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}[
        type(value)
    ]
    setattr(parameter, kind, value)
