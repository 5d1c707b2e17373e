"""Encoding and decoding of INFER frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tritonpy import InferRequest, OutputSpec, SequenceInfo, Tensor
from tritonpy.auth import Principal
from tritonpy.frontend import NO_PARAMETERS, Sink
from tritonpy_frontend_processes.irregular_tensors import (
    TensorDescription,
    is_irregular,
    restore,
    split_irregular,
)
from tritonpy_frontend_processes.model_ids import ModelIdDecoder, ModelIdEncoder
from tritonpy_ipc import ProtocolError
from tritonpy_ipc.blocks import BlockInputs

_WORDS = 5  # of each run: number of requests, number of the first, model id, flags, sequence
_TIMES = 2  # of each request: receive time and deadline
# flags
_DECOUPLED, _CLASSIFIES, _REGIONS, _START, _END, _SEQUENCE, _HAS_OPTIONAL_FIELDS = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
)
RequestedOutputs = tuple[str, ...] | None


class TraceMessage(msgspec.Struct):
    """Trace data of a request from the frontend: client headers, and time stamps (name, ns)."""

    headers: dict[str, str]
    stamps: list[tuple[str, int]]


class OptionalFields(msgspec.Struct, omit_defaults=True):
    """Fields that few requests have.

    - `outputs`: name, classes, region, offset and size of each.
    - `text_id`: the text id of a sequence.
    """

    parameters: dict[str, str | bool | int | float] | None = None
    priority: int = 0
    timeout_us: int = 0
    text_id: str = ""
    outputs: list[tuple[str, int, str, int, int]] = []
    tensors: list[TensorDescription] = []
    principal: tuple[str, str] | None = None
    headers: dict[str, str] | None = None
    trace: TraceMessage | None = None


class RequestsFrame(NamedTuple):
    """The parts of an INFER frame: words, inputs and requested outputs per request, and extras."""

    words: list[int]
    rows: list[Sequence[Tensor]]
    requested: list[RequestedOutputs]
    extras: dict[str, Any]


ReadRequests = tuple[int, list[InferRequest], TraceMessage | None]
"""Number of the first request, the requests, and trace data if there is only one request.

Several requests have identical headers (`Engine.infer_many`).
"""


def write_requests(
    requests: Sequence[tuple[int, InferRequest]],
    model_ids: ModelIdEncoder,
    trace_of: Callable[[int, InferRequest], TraceMessage],
) -> RequestsFrame:
    """Return the parts of a frame for `requests`, pairs of a number and a request.

    `trace_of` returns the trace data of a request with a trace.
    """
    model_ids.begin()
    frame = RequestsFrame([len(requests), 0], [], [], {})
    words, rows, requested, extras = frame
    optional: dict[str, Any] = {}
    named = False
    # start of the last run; number and model id that would continue it
    run, next_in_run = 0, (-1, -1)
    for index, (number, request) in enumerate(requests):
        flags, sequence = _flags(request)
        row: Sequence[Tensor] = list(request.inputs.values())
        irregular: list[TensorDescription] = []
        if any([is_irregular(tensor) for tensor in row]):
            row, irregular = split_irregular(row)
        rows.append(row)
        requested.append(None if request.outputs is None else tuple(request.outputs))
        if irregular or not _is_plain(request):
            fields = _optional_fields(number, request, irregular, trace_of)
            if fields:
                optional[str(index)] = fields
                flags |= _HAS_OPTIONAL_FIELDS
        named = named or bool(request.id)
        model_id = model_ids.number(request.model_name, request.model_version)
        if flags or next_in_run != (number, model_id):
            run = len(words)
            words += (0, number, model_id, flags, sequence)
        words[run] += 1
        words += (request.received_ns, request.deadline_ns)
        next_in_run = (-1, -1) if flags else (number + 1, model_id)
    words[1] = len(words)
    if named:
        extras["ids"] = [request.id for _, request in requests]
    if optional:
        extras["optional"] = optional
    extras.update(model_ids.new_ids())
    return frame


def _flags(request: InferRequest) -> tuple[int, int]:
    """Return the flags of a request and the number of its sequence.

    The number is 0 without a sequence, or for a text id.
    """
    flags = (
        (_DECOUPLED if request.accepts_decoupled else 0)
        | (_CLASSIFIES if request.classifies else 0)
        | (_REGIONS if request.uses_regions else 0)
    )
    sequence = request.sequence
    if sequence is None:
        return flags, 0
    flags |= _SEQUENCE | (_START if sequence.start else 0) | (_END if sequence.end else 0)
    return flags, sequence.id if isinstance(sequence.id, int) else 0


def _is_plain(request: InferRequest) -> bool:
    return (
        not (
            request.parameters
            or request.priority
            or request.timeout_us
            or request.classifies
            or request.uses_regions
        )
        and (request.sequence is None or isinstance(request.sequence.id, int))
        and request.principal is None
        and not request.headers
        and request.trace is None
    )


def _optional_fields(
    number: int,
    request: InferRequest,
    irregular: list[TensorDescription],
    trace_of: Callable[[int, InferRequest], TraceMessage],
) -> Any:
    sequence, principal = request.sequence, request.principal
    outputs = [
        (spec.name, spec.classification, spec.region, spec.offset, spec.byte_size)
        for spec in (request.outputs or {}).values()
        if spec.classification or spec.region
    ]
    return msgspec.to_builtins(
        OptionalFields(
            dict(request.parameters) or None,
            request.priority,
            request.timeout_us,
            sequence.id if sequence is not None and isinstance(sequence.id, str) else "",
            outputs,
            irregular,
            None if principal is None else (principal.name, principal.account),
            dict(request.headers) if request.headers else None,
            None if request.trace is None else trace_of(number, request),
        )
    )


def read_requests(
    words: Sequence[int],
    extras: dict[str, Any],
    rows: Sequence[BlockInputs | Sequence[Tensor]],
    requested: Sequence[RequestedOutputs],
    model_ids: ModelIdDecoder,
    sink: Sink,
) -> list[ReadRequests]:
    """Return the requests of a frame. Consecutive requests with identical headers are together.

    Their responses go to `sink`. Raises ProtocolError.
    """
    model_ids.learn(extras)
    found: list[ReadRequests] = []
    optional, ids = extras.get("optional", {}), extras.get("ids")
    try:
        if len(rows) != words[0]:
            raise ProtocolError(f"{words[0]} requests arrived with {len(rows)} rows")
        index, at = 0, 2
        while index < len(rows):
            count, number, model_id, flags, sequence = words[at : at + _WORDS]
            at += _WORDS
            times = words[at : at + _TIMES * count]
            at += _TIMES * count
            stop = index + count
            requests = _build_requests(
                rows[index:stop], requested[index:stop], model_ids.get(model_id), times, sink
            )
            if len(requests) != count or not count:
                raise ProtocolError(f"a run of {count} requests is truncated")
            if ids is not None:
                for request, text in zip(requests, ids[index:stop], strict=True):
                    request.id = text
            if flags:
                (request,) = requests
                found.append(
                    (
                        number,
                        requests,
                        _apply_flags(request, flags, sequence, optional.get(str(index))),
                    )
                )
            else:
                found += _split_by_block(number, requests)
            index = stop
    except (IndexError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise ProtocolError(f"requests are malformed: {error}") from error
    return found


def _build_requests(
    rows: Sequence[BlockInputs | Sequence[Tensor]],
    requested: Sequence[RequestedOutputs],
    model_id: tuple[str, int],
    times: Sequence[int],
    sink: Sink,
) -> list[InferRequest]:
    """Return requests without optional fields. Equal requested outputs share one mapping."""
    model, version = model_id
    requests: list[InferRequest] = []
    known: RequestedOutputs = None
    outputs: dict[str, OutputSpec] | None = None
    for row, wanted, received_ns, deadline_ns in zip(
        rows, requested, times[::_TIMES], times[1::_TIMES], strict=True
    ):
        if wanted is not known:
            known = wanted
            outputs = None if wanted is None else {name: OutputSpec(name) for name in wanted}
        inputs: Any = (
            row if isinstance(row, BlockInputs) else {tensor.name: tensor for tensor in row}
        )
        request = InferRequest(model, inputs, sink, version, "", outputs)
        request.received_ns = received_ns
        if deadline_ns:
            request.deadline_ns = deadline_ns
        requests.append(request)
    return requests


def _split_by_block(number: int, requests: list[InferRequest]) -> Iterator[ReadRequests]:
    """Split a run where its inputs are in another block.

    Inputs of one block have the same names, types and shapes, and requests of a run request the
    same outputs.
    """
    start = 0
    while start < len(requests):
        inputs: Any = requests[start].inputs
        stop = start + 1
        if isinstance(inputs, BlockInputs):
            stop = start + inputs.block.count - inputs.position
        yield number + start, requests[start:stop], None
        start = stop


def _apply_flags(
    request: InferRequest, flags: int, sequence: int, fields: Any
) -> TraceMessage | None:
    request.accepts_decoupled = bool(flags & _DECOUPLED)
    request.classifies = bool(flags & _CLASSIFIES)
    request.uses_regions = bool(flags & _REGIONS)
    if flags & _SEQUENCE:
        request.sequence = SequenceInfo(sequence, bool(flags & _START), bool(flags & _END))
    if not flags & _HAS_OPTIONAL_FIELDS:
        return None
    optional = msgspec.convert(fields, OptionalFields)
    _apply_optional_fields(request, optional)
    return optional.trace


def _apply_optional_fields(request: InferRequest, optional: OptionalFields) -> None:
    request.parameters = optional.parameters or NO_PARAMETERS
    request.priority, request.timeout_us = optional.priority, optional.timeout_us
    if optional.text_id and request.sequence is not None:
        request.sequence = SequenceInfo(
            optional.text_id, request.sequence.start, request.sequence.end
        )
    if request.outputs is not None:
        request.outputs.update({spec[0]: OutputSpec(*spec) for spec in optional.outputs})
    if optional.tensors:
        row = restore(list(request.inputs.values()), optional.tensors)
        request.inputs = {tensor.name: tensor for tensor in row}
    if optional.principal is not None:
        request.principal = Principal(optional.principal[0], account=optional.principal[1])
    request.headers = optional.headers
