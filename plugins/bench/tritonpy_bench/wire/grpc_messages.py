"""gRPC requests as bytes, each with gRPC's prefix of five bytes. Serialized messages may be joined: what differs between two requests follows what does not."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from typing import Any

from tritonpy_bench.inputs.corpus import Corpus
from tritonpy_bench.load.jobs import Job
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import TargetFacts
from tritonpy_bench.wire.http_messages import region_parameters
from tritonpy_bench.wire.regions import Regions
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

_PREFIX = struct.Struct(">BI")  # whether it is compressed, and its length in bytes
PREFIX_BYTES = _PREFIX.size
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


class GrpcMessages:
    """Makes and keeps them: one for each step, and for each place where outputs go to shared memory."""

    def __init__(self, facts: TargetFacts, options: BenchOptions, corpus: Corpus, regions: Regions | None) -> None:
        self._facts = facts.model
        self._corpus = corpus
        self._regions = regions
        self._parameters: dict[str, Any] = dict(options.request_parameter)
        if facts.model.decoupled:
            self._parameters["triton_enable_empty_final_response"] = True
        self._compress = _COMPRESS.get(options.grpc_compression_algorithm)
        self._made: dict[tuple[int, int], bytes] = {}
        self._framed: dict[tuple[int, int], bytes] = {}

    def of(self, job: Job, place: int, request_id: str = "") -> bytes:
        """Return the request of a job that goes out at `place`, with gRPC's prefix."""
        key = (job.step, 0 if self._regions is None else place)
        if not (request_id or job.sequence):
            framed = self._framed.get(key)
            if framed is None:
                framed = self._framed[key] = self._frame(self._make(job.step, place).SerializeToString())
            return framed
        fixed = self._made.get(key)
        if fixed is None:
            fixed = self._made[key] = self._make(job.step, place).SerializeToString()
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

    def _make(self, step: int, place: int) -> ModelInferRequest:
        request = ModelInferRequest(model_name=self._facts.name, model_version=self._facts.version)
        for name, value in self._parameters.items():
            _set(request.parameters[name], value)
        for number, tensor in enumerate(self._corpus.steps[step]):
            told = request.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
            if self._regions is None:
                request.raw_input_contents.append(tensor.content)
                continue
            for name, value in region_parameters(self._regions.inputs[step][number]).items():
                _set(told.parameters[name], value)
        if self._regions is not None:
            for number, output in enumerate(self._facts.outputs):
                wanted = request.outputs.add(name=output.name)
                for name, value in region_parameters(self._regions.output(place, number)).items():
                    _set(wanted.parameters[name], value)
        return request


def unframe(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the messages that are complete, decompressed, and the bytes that follow them. Raises zlib.error."""
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
    kind = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}[type(value)]
    setattr(parameter, kind, value)
