"""HTTP requests as bytes, made once; the sequence id has a field of fixed width."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tritonpy_load_generator.inputs.corpus import Corpus
from tritonpy_load_generator.loops.jobs import Job
from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.http_control import model_path
from tritonpy_load_generator.target.metadata import TargetDescription
from tritonpy_load_generator.wire.address import http_address
from tritonpy_load_generator.wire.regions import ClientRegions, Slice

# The widest id; shorter ones are padded with spaces, which JSON ignores.
_PLACEHOLDER = b"18446744073709551615"
_MAX_JOINED_BYTES = 1 << 16


class Message(NamedTuple):
    """A request: `head`, sequence id if `middle` is given, `middle`, large tensors in `body`."""

    head: bytes
    middle: bytes | None
    body: bytes

    def parts(self, sequence: int) -> list[bytes]:
        """Return the bytes to write for a request of the sequence (0: none)."""
        if self.middle is None:
            return [self.head, self.body] if self.body else [self.head]
        return [b"%b%20d%b" % (self.head, sequence, self.middle), self.body]


class HttpMessages:
    """Cached requests, one per distinct job."""

    def __init__(
        self,
        target: TargetDescription,
        options: LoadOptions,
        corpus: Corpus,
        regions: ClientRegions | None,
    ) -> None:
        self._corpus = corpus
        self._regions = regions
        self._outputs = target.model.outputs
        self._parameters = dict(options.request_parameter)
        self._binary_in = _binary(options.input_tensor_format, target)
        out = (
            options.input_tensor_format
            if options.output_tensor_format == "auto"
            else options.output_tensor_format
        )
        if _binary(out, target) and regions is None:
            self._parameters["binary_data_output"] = True
        self._start = _start_line(target, options)
        self._cache: dict[tuple[int, int, bool, bool, bool], Message] = {}

    def message_for(self, job: Job, slot: int) -> Message:
        """Return the request of a job sent in `slot`."""
        key = (job.step, 0 if self._regions is None else slot, job.sequence > 0, job.start, job.end)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._make(job, slot)
        return found

    def _make(self, job: Job, slot: int) -> Message:
        parameters: dict[str, Any] = {}
        if job.sequence:  # first, so that a parameter with the placeholder's value comes later
            parameters = {
                "sequence_id": int(_PLACEHOLDER),
                "sequence_start": job.start,
                "sequence_end": job.end,
            }
        parameters |= self._parameters
        inputs, body = self._inputs(job.step)
        document: dict[str, Any] = {"parameters": parameters} if parameters else {}
        document["inputs"] = inputs
        if self._regions is not None:
            document["outputs"] = [
                {
                    "name": tensor.name,
                    "parameters": region_parameters(self._regions.output(slot, number)),
                }
                for number, tensor in enumerate(self._outputs)
            ]
        return self._message(msgspec.json.encode(document), body, job.sequence > 0)

    def _message(self, text: bytes, body: bytes, sequence: bool) -> Message:
        head = self._start + b"Content-Length: %d\r\n" % (len(text) + len(body))
        if body:
            head += (
                b"Inference-Header-Content-Length: %d\r\nContent-Type: "
                b"application/octet-stream\r\n\r\n"
            ) % len(text)
        else:
            head += b"Content-Type: application/json\r\n\r\n"
        before, _, after = text.partition(_PLACEHOLDER) if sequence else (text, b"", b"")
        if len(body) <= _MAX_JOINED_BYTES:
            after, body = after + body, b""
        if not sequence:
            return Message(head + before + after, None, body)
        return Message(head + before, after, body)

    def _inputs(self, step: int) -> tuple[list[dict[str, Any]], bytes]:
        described, contents = [], []
        for number, tensor in enumerate(self._corpus.steps[step]):
            plain: dict[str, Any] = {
                "name": tensor.name,
                "datatype": tensor.datatype,
                "shape": tensor.shape,
            }
            if self._regions is not None:
                plain["parameters"] = region_parameters(self._regions.inputs[step][number])
            elif self._binary_in:
                plain["parameters"] = {"binary_data_size": len(tensor.content)}
                contents.append(tensor.content)
            else:
                plain["data"] = tensor.as_json()
            described.append(plain)
        return described, b"".join(contents)


def region_parameters(part: Slice) -> dict[str, str | int]:
    """Return the parameters that refer a tensor to its slice of shared memory."""
    return {
        "shared_memory_region": part.region,
        "shared_memory_offset": part.offset,
        "shared_memory_byte_size": part.byte_size,
    }


def _binary(tensor_format: str, target: TargetDescription) -> bool:
    return target.server.binary if tensor_format == "auto" else tensor_format == "binary"


def _start_line(target: TargetDescription, options: LoadOptions) -> bytes:
    address = http_address(options)
    path = address.prefix + model_path(target.model.name, target.model.version)
    lines = [f"POST {path}/infer HTTP/1.1", f"Host: {address}"]
    lines += [f"{name}: {value}" for name, value in options.headers]
    return "".join(f"{line}\r\n" for line in lines).encode()
